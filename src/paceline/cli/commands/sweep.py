"""``paceline sweep``: data and model parallelism along the five axes, with crossovers."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from paceline.cli.output import emit_json, json_option, next_line
from paceline.cli.plan_options import Request, place_options, workload_options
from paceline.errors import InputError

if TYPE_CHECKING:
    from paceline.hardware import Cluster
    from paceline.plan.plan import Plan
    from paceline.predictor.vectorised import Comparison
    from paceline.workload.workload import Workload

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
@click.option("--compare", "ways", default="dp,mp", show_default=True, help="dp, mp or both.")
@click.option("--framework", help="A profile, as in pydtnn [default: torch-ddp].")
@click.option("--overlap", help="none, per_tensor, bucketed or one_message.")
@click.option("--out", type=click.Path(path_type=Path), help="Write every point as CSV.")
@click.option("--figure", type=click.Path(path_type=Path), help="Write a one-axis sweep as SVG.")
@json_option
def command(
    axes: tuple[str, ...],
    ways: str,
    framework: str | None,
    overlap: str | None,
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
    from paceline.cli.sweep_axes import parse_axis
    from paceline.predictor.vectorised import compare

    given = [parse_axis(text) for text in axes]
    if len(dict(given)) != len(given):
        raise InputError("the same axis twice", "give each --axis another name")
    cluster, workload = _place(options)
    comparison = compare(
        workload,
        cluster,
        dict(given),
        [way.strip() for way in ways.split(",")],
        plan=_plan(framework, overlap),
        global_batch=options["global_batch"],
    )
    _write(comparison, out, figure)
    if as_json:
        from paceline.cli.sweep_tables import sweep_json

        emit_json("sweep", 1, {"model": workload.graph.name, **sweep_json(comparison)})
        return
    _print(comparison, f"{workload.graph.name} on {cluster.name}, {workload.precision}")
    for path in (out, figure):
        if path is not None:
            click.echo(f"written: {path}")
    next_line(_next(options, given[0][0]))


def _place(options: dict[str, Any]) -> "tuple[Cluster, Workload]":
    """The cluster, and the workload of one of its workers."""
    if options["trace_name"] is not None:
        raise InputError("a trace holds for one device only", "name the network: --model alexnet")
    cluster = Request(options).clusters()[0]
    own = {**options, "global_batch": None}
    if options["global_batch"] is not None and options["batch"] is not None:
        raise InputError("both --batch and --global-batch", "give one of them")
    return cluster, Request(own).workload(1)


def _plan(framework: str | None, overlap: str | None) -> "Plan":
    from paceline.plan.plan import Plan
    from paceline.plan.synchronisation import synchronisation

    chosen = None if overlap is None else synchronisation(overlap)
    return Plan(framework=framework, synchronisation=chosen)


def _write(comparison: "Comparison", out: Path | None, figure: Path | None) -> None:
    from paceline.cli.sweep_tables import sweep_csv, sweep_figure
    from paceline.report.files import write_text

    if out is not None:
        write_text(out, sweep_csv(comparison))
    if figure is not None:
        from paceline.report.figures.drawing import draw, standalone

        if len(comparison.axes) != 1:
            raise InputError("a figure shows one axis", "give one --axis, or --out for a table")
        write_text(figure, standalone(draw(sweep_figure(comparison))))


def _print(comparison: "Comparison", title: str) -> None:
    from paceline.cli.sweep_tables import crossing_lines, surface_lines, sweep_figure, sweep_table
    from paceline.report.terminal import print_table, terminal_width
    from paceline.report.terminal_lines import lines_text

    if len(comparison.axes) == 1:
        print_table(sweep_table(comparison, title))
        lines = ["", *lines_text(sweep_figure(comparison), terminal_width())]
    elif len(comparison.seconds) == 2:
        lines = [title, *surface_lines(comparison, terminal_width())]
    else:
        raise InputError("a surface compares two ways", "take --compare dp,mp, or one axis")
    for line in [*lines, *crossing_lines(comparison)]:
        click.echo(line)


def _next(options: dict[str, Any], axis: str) -> str:
    other = "nodes=2..64" if axis != "nodes" else "link=1gbit..100gbit"
    place = f"--cluster {options['cluster_name']}" if options["cluster_name"] else ""
    place = place or f"--device {options['device_name']}"
    return f"paceline sweep --model {options['model']} {place} --axis {other}"
