"""``paceline trace``: analyse traces without importing them."""

from pathlib import Path

import click

from paceline.cli.next_steps import same_job
from paceline.cli.options import figure_option, out_option
from paceline.cli.output import emit, json_option

EXAMPLE = """
\b
Examples:
  paceline trace trace-rank0.json trace-rank1.json
  paceline trace operations.csv --heatmap map.svg
  paceline trace trace-rank0.json --out step.json     (for Perfetto)
  paceline trace trace-rank1.json --against trace-rank0.json
"""


@click.command(epilog=EXAMPLE)
@click.argument(
    "files", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True, readable=True)
)
@click.option("--program", metavar="NAME", help="Program that wrote the files [default: detected].")
@click.option(
    "--against",
    multiple=True,
    type=click.Path(path_type=Path, exists=True, readable=True),
    help="Trace to compare with, task by task; repeat for each file.",
)
@out_option("--out", "Write the typical step of all ranks as a Chrome trace.")
@click.option(
    "--otf2",
    type=click.Path(path_type=Path, file_okay=False),
    help="Write the typical step as an OTF2 archive to this directory, for example for Vampir.",
)
@figure_option("--heatmap", "Draw a heat map of ranks over time: busy, waiting, idle")
@json_option
def command(
    files: tuple[Path, ...],
    program: str | None,
    against: tuple[Path, ...],
    out: Path | None,
    otf2: Path | None,
    heatmap: Path | None,
    as_json: bool,
) -> None:
    """Break a trace down by phase, find stragglers, and estimate the gain of each fix.

    FILES are one file, or one per rank: PyTorch profiler, Horovod timeline, other Chrome traces
    with recognisable names, OTF2, or a table with the columns rank, step, operation, start and
    duration (optional: stage, dp_rank and other coordinates of a rank).
    """
    from paceline.explanation.api import trace

    found = trace(files, program=program, against=against, out=out, otf2=otf2, heatmap=heatmap)
    further = same_job("trace", drop=("otf2", "heatmap"), out="step.json")
    emit(found, as_json, further, same_job("import", dry_run=True))
