"""``paceline sweep``: data and model parallelism along the five axes, with crossovers."""

from pathlib import Path
from typing import Any

import click

from paceline.cli.next_steps import next_line, same_job
from paceline.cli.options import figure_option, out_option, places_given, workers_option
from paceline.cli.output import emit_json, json_option, show, write_figure
from paceline.cli.plan_options import place_options, workload_options
from paceline.errors import InputError

EXAMPLE = """
\b
Examples:
  paceline sweep --model alexnet --batch 16 --cluster knl-opa --nodes 8 \\
      --axis link=1gbit..1000gbit:40 --compare dp,mp
  paceline sweep --model vgg16 --cluster hkbu-v100-pcie -j 8x1 \\
      --axis batch=1..64 --axis link=1gbit..100gbit:20 --out table.csv
  paceline sweep --model resnet50 --batch 64 --cluster dgx-1 --axis nodes=1..64 --compare dp
"""


@click.command(epilog=EXAMPLE)
@workload_options
@place_options
@click.option(
    "--axis",
    "axes",
    multiple=True,
    required=True,
    help="batch, flops, memory, link or nodes: NAME=FIRST..LAST[:COUNT] or NAME=A,B,C; one or two.",
)
@click.option("--compare", default="dp,mp", show_default=True, help="dp, mp or both.")
@click.option("--framework", help="A profile, as in pydtnn [default: torch-ddp].")
@click.option(
    "--overlap", help="When gradients travel: none, per_tensor, bucketed, one_message, split."
)
@workers_option
@out_option("--out", "Write every point as CSV.")
@figure_option("--figure", "Draw a one-axis sweep")
@json_option
def command(
    axes: tuple[str, ...],
    out: Path | None,
    figure: Path | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Compare data and model parallelism along one or two of five axes.

    The axes are batch, FLOP/s of a device, memory bandwidth, link bandwidth and nodes; what is
    no axis stays as the workload and the cluster have it. Both ways train on the same samples
    per step. Crossovers are solved, not read off the figure.
    """
    from paceline.api.predictions import sweep
    from paceline.report.files import write_text
    from paceline.report.tables import sweeps
    from paceline.report.terminal import terminal_width

    if figure is not None and len(axes) > 1:
        raise InputError("a figure shows one axis", "give one --axis, or --out for a table")
    place = places_given(options.pop("places"), options.pop("nodes"))[0]
    comparison = sweep(axes=axes, **{**options, **place})
    if out is not None:
        write_text(out, sweeps.sweep_csv(comparison))
    if figure is not None:
        write_figure(figure, sweeps.sweep_figure(comparison))
    if as_json:
        emit_json("sweep", 1, {"model": options["model"], **sweeps.sweep_json(comparison)})
        return
    place_name = options["cluster"] or options["device"]
    title = f"{options['model']} on {place_name}, {options['precision']}"
    show(sweeps.sweep_parts(comparison, title, terminal_width()))
    show(f"written: {path}" for path in (out, figure) if path is not None)
    other = "nodes=2..64" if "nodes" not in comparison.axes else "link=1gbit..100gbit"
    next_line(same_job("sweep", drop=("out", "figure"), axes=other))
