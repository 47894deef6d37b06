"""``paceline sweep``: compare data and model parallelism along axes, with crossovers."""

from pathlib import Path
from typing import Any, cast

import click

from paceline.cli.help_sections import SectionedCommand
from paceline.cli.knob_options import options_of
from paceline.cli.next_steps import next_line, same_job
from paceline.cli.options import figure_option, out_option, workers_option
from paceline.cli.output import emit_json, json_option, show, write_figure
from paceline.errors import InputError
from paceline.spec.job_options import SweepOptions, Target

EXAMPLE = """
\b
Examples:
  paceline sweep --model alexnet --batch 16 --cluster knl-opa --nodes 8 \\
      --axis link=1gbit..1000gbit:40 --compare dp,mp
  paceline sweep --model vgg16 --cluster hkbu-v100-pcie -j 8x1 \\
      --axis batch=1..64 --axis link=1gbit..100gbit:20 --out table.csv
  paceline sweep --model resnet50 --batch 64 --cluster dgx-1 --axis nodes=1..64 --compare dp
"""


@click.command(cls=SectionedCommand, epilog=EXAMPLE)
@options_of(Target, SweepOptions)
@click.option(
    "--axis",
    "axes",
    metavar="NAME=VALUES",
    multiple=True,
    required=True,
    help="Axis batch, flops, memory, link or nodes with values FIRST..LAST[:COUNT] or A,B,C; may "
    "be given twice.",
)
@click.option(
    "--compare",
    metavar="dp,mp",
    default="dp,mp",
    show_default=True,
    help="Parallelism to compare: data (dp), model (mp) or both.",
)
@workers_option
@out_option("--out", "Write all points as CSV.")
@figure_option("--figure", "Draw a sweep of one axis")
@json_option
def command(
    axes: tuple[str, ...],
    out: Path | None,
    figure: Path | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Compare data and model parallelism along one or two axes.

    The axes are batch size, FLOP/s of a device, memory bandwidth, link bandwidth and number of
    nodes; other parameters are those of the workload and the cluster. Both kinds of parallelism
    use the same number of samples per step. Crossovers are solved numerically.
    """
    from paceline.predictor.sweep import sweep_tables as sweeps
    from paceline.predictor.sweep.api import sweep, swept_jobs, swept_workload
    from paceline.render.files import write_text
    from paceline.render.terminal import terminal_width

    if figure is not None and len(axes) > 1:
        raise InputError("--figure supports one axis only", "give one --axis, or use --out")
    further = {name: options.pop(name) for name in ("compare", "workers")}
    jobs = swept_jobs(options.pop("model"), options.pop("cluster"), options)
    if len(jobs) > 1 and (out or figure):
        raise InputError(
            f"--out and --figure write one sweep (got {len(jobs)})", "give one value of each option"
        )
    titles, results = [], []
    for job in jobs:
        workload = swept_workload(job)
        comparison = sweep(
            workload, job.cluster, axes, **further, **cast(SweepOptions, job.options)
        )
        title = f"{job.model} on {job.cluster or job.options.get('device')}, {workload.precision}"
        if "link" in job.options and "link" not in comparison.axes:
            title += f", link {job.options['link']}"
        if job.options.get("global_batch") is None and "batch" not in comparison.axes:
            title += f", batch {workload.batch} per device"
        titles.append(title)
        chosen = {"model": job.model, "cluster": job.cluster, **job.options}
        chosen["precision"] = workload.precision
        results.append((comparison, chosen))
    comparison = results[0][0]
    if out is not None:
        write_text(out, sweeps.sweep_csv(comparison))
    if figure is not None:
        write_figure(figure, sweeps.sweep_figure(comparison))
    if as_json:
        found = [{**chosen, **sweeps.sweep_json(each)} for each, chosen in results]
        emit_json("sweep", 1, found[0] if len(found) == 1 else {"sweeps": found})
        return
    for (each, _), title in zip(results, titles, strict=True):
        show(sweeps.sweep_parts(each, title, terminal_width()))
    show(f"Wrote {path}" for path in (out, figure) if path is not None)
    other = "nodes=2..64" if "nodes" not in comparison.axes else "link=1gbit..100gbit"
    next_line(same_job("sweep", drop=("out", "figure"), axes=other))
