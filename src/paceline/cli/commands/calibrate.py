"""``paceline calibrate``: benchmark this machine and fit predictions to its launches."""

from pathlib import Path
from typing import Any

import click

from paceline.cli.help_sections import SectionedCommand, together
from paceline.cli.measuring_options import launcher_options, launcher_settings
from paceline.cli.next_steps import next_line, same_job, with_store
from paceline.cli.options import IntegerRange, out_option, store_option
from paceline.cli.output import emit, json_option
from paceline.errors import InputError

EXAMPLE = """
\b
Examples:
  paceline calibrate
  paceline calibrate --model resnet44 --json
  paceline calibrate --no-probe
  paceline calibrate --hosts node1,node2 --launcher ssh -j 2x1 --out curve.json
"""


@click.command(cls=SectionedCommand, epilog=EXAMPLE)
@click.option(
    "--model", metavar="NAME", help="Model to fit [default: the one with the most launches]."
)
@together(
    click.option(
        "--probe/--no-probe",
        default=None,
        help="Benchmark the machine again, or never [default: if the profile is missing or older "
        "than a week].",
    ),
    click.option(
        "--ranks",
        metavar="N[,N]|N..N",
        default="2",
        show_default=True,
        help="Numbers of ranks for all-reduce.",
    ),
    click.option(
        "--threads", type=IntegerRange(1), default=1, show_default=True, help="Threads per rank."
    ),
    click.option("--oversubscribe", is_flag=True, help="Allow more ranks x threads than cores."),
    section="Benchmark of this machine",
)
@together(
    click.option(
        "-j",
        "topology",
        metavar="NODESxPROCESSES",
        help="Measure all-reduce on this topology instead of this machine.",
    ),
    launcher_options,
    out_option(
        "--out", "Write the all-reduce curve between hosts, for 'predict --allreduce-curve'."
    ),
    section="Links between hosts",
)
@store_option
@json_option
def command(
    model: str | None,
    probe: bool | None,
    ranks: str,
    threads: int,
    oversubscribe: bool,
    topology: str | None,
    out: Path | None,
    store_path: Path | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Benchmark this machine, fit predictions to its launches, and report the quality of the fit.

    The benchmark measures GEMM by size, memory, all-reduce by size and co-location. The fit is of
    step time by batch size, all-reduce during training and variation between launches; the output
    names the run that would narrow prediction intervals most. 'paceline predict' uses both.

    With -j, --hosts or --launcher the command measures all-reduce between hosts instead, with the
    message pattern of a training step; 'paceline predict --allreduce-curve' uses the result.
    """
    from paceline.calibration.api import calibrate, calibrate_links
    from paceline.cli.progress import study_progress
    from paceline.topology import parse_counts

    launcher = launcher_settings(options)
    if topology is None and not launcher:
        if out is not None:
            raise InputError("--out requires several hosts", "add -j 2x1 and --hosts or --launcher")
        with study_progress("calibrate") as progress:
            found = calibrate(
                model,
                probe=probe,
                ranks=parse_counts(ranks, "ranks", "--ranks"),
                threads=threads,
                oversubscribe=oversubscribe,
                store=store_path,
                on_stage=progress.stage,
            )
        run = same_job("measure", model="resnet44", processes="1x1,1x2")
        emit(found, as_json, with_store(found.fit.next_runs[0].command) if found.fit else run)
        return
    if model is not None or probe is not None:
        raise InputError(
            "--model and --probe are about this machine", "omit them, or -j, --hosts, --launcher"
        )
    with study_progress("links") as progress:
        found = calibrate_links(
            topology, **launcher, out=out, store=store_path, on_stage=progress.stage
        )
    emit(found, as_json)
    if out is not None and not as_json:
        job = f"--model resnet50 --device v100 --allreduce-curve {out} -j {topology or '2x1'}"
        next_line(f"paceline predict {job}")
