"""``paceline probe``: benchmark this machine, or the links between hosts."""

from pathlib import Path
from typing import Any

import click

from paceline.cli.echo import echo
from paceline.cli.next_steps import next_line, same_job
from paceline.cli.options import launcher_options, launcher_settings, out_option, store_option
from paceline.cli.output import emit_json, json_option, json_text, show, warn
from paceline.errors import InputError

EXAMPLE = """
\b
Examples:
  paceline probe
  paceline probe --ranks 2,4 --again
  paceline probe --hosts node1,node2 --launcher ssh -j 2x1 --out curve.json
  paceline probe --launcher lab -j 4x1
"""


@click.command(epilog=EXAMPLE)
@click.option(
    "--ranks",
    metavar="N[,N]|N..N",
    default="2",
    show_default=True,
    help="Numbers of ranks for all-reduce.",
)
@click.option("--threads", default=1, show_default=True, help="Threads per rank.")
@click.option("--oversubscribe", is_flag=True, help="Allow more ranks x threads than cores.")
@click.option("--again", is_flag=True, help="Benchmark even if a recent profile exists.")
@click.option(
    "-j",
    "topology",
    metavar="NODESxPROCESSES",
    help="Measure all-reduce on this topology instead of this machine.",
)
@launcher_options
@out_option("--out", "Write the all-reduce curve between hosts, for 'predict --allreduce-curve'.")
@store_option
@json_option
def command(
    ranks: str,
    threads: int,
    oversubscribe: bool,
    again: bool,
    topology: str | None,
    out: Path | None,
    store_path: Path | None,
    as_json: bool,
    **chosen: Any,
) -> None:
    """Benchmark this machine: GEMM by size, memory, all-reduce by size, co-location.

    The profile is stored with its date and used until it is a week old or the machine changes.
    With -j, --hosts or --launcher the command measures all-reduce between hosts instead, with the
    message pattern of a training step; 'paceline predict --allreduce-curve' uses the result.
    """
    if topology is not None or launcher_settings(chosen):
        _probe_hosts(topology, out, store_path, as_json, launcher_settings(chosen))
        return
    if out is not None:
        raise InputError("--out requires several hosts", "add -j 2x1 and --hosts or --launcher")
    from paceline.calibration.profile_tables import profile_parts
    from paceline.cli.progress import study_progress
    from paceline.launch.launcher import own_cores
    from paceline.measurement.probe.machine_probe import current_profile, probe_machine
    from paceline.store import Store, default_store_path
    from paceline.topology import parse_counts

    counts = parse_counts(ranks, "ranks", "--ranks")
    if min(counts) < 2 or threads < 1:
        raise InputError(
            "all-reduce needs at least 2 ranks with at least 1 thread each", "write --ranks 2"
        )
    cores = own_cores()
    if max(counts) * threads > cores and not oversubscribe:
        raise InputError(
            f"{max(counts)} ranks need {max(counts) * threads} cores; this machine has {cores}",
            "use fewer --ranks, or add --oversubscribe to share cores",
        )
    with Store(store_path or default_store_path()) as store:
        profile = None if again else current_profile(store, threads)
        if profile is None or not set(counts) <= set(profile.all_reduce):
            with study_progress("probe") as progress:
                profile = probe_machine(store, counts, threads, on_stage=progress.stage)
    if as_json:
        emit_json("probe", 1, {"profile": profile.to_json()})
        return
    show(profile_parts(profile))
    warn(f"warning: {note}" for note in profile.notes)
    next_line(same_job("measure", model="resnet44", topologies="1x1,1x2"), "paceline demo")


def _probe_hosts(
    topology: str | None, out: Path | None, path: Path | None, as_json: bool, chosen: dict[str, Any]
) -> None:
    """Measure all-reduce between hosts; print the curve and write it to ``out`` if given."""
    from paceline.calibration.profile_tables import curve_parts
    from paceline.cli.progress import study_progress
    from paceline.measurement.choose_launcher import chosen_launcher
    from paceline.measurement.probe.link_probe import probe_links
    from paceline.render.files import write_text
    from paceline.store import Store, default_store_path
    from paceline.topology import parse_topology

    starter = chosen_launcher(**chosen)
    nodes, processes = parse_topology(topology) if topology else (len(starter.hosts()), 1)
    if nodes * processes < 2:
        raise InputError("all-reduce needs at least 2 ranks", "write -j 2x1 or more")
    with Store(path or default_store_path()) as store, study_progress("probe") as progress:
        progress.stage(f"all-reduce on {nodes}x{processes} ranks")
        curve = probe_links(store, starter, nodes, processes)
    if out is not None:
        write_text(out, json_text("curve", 1, curve.to_json()))
    if as_json:
        emit_json("curve", 1, curve.to_json())
        return
    show(curve_parts(curve))
    if out is not None:
        echo(f"All-reduce curve: {out}")
        job = f"--model resnet50 --device v100 --allreduce-curve {out}"
        next_line(f"paceline predict {job} -j {nodes}x{processes}")
    else:
        next_line("paceline probe --help", "paceline doctor")
