"""``paceline trace``: analyse traces without importing them."""

from pathlib import Path

import click

from paceline.cli.echo import echo
from paceline.cli.next_steps import next_line, same_job
from paceline.cli.options import figure_option, out_option
from paceline.cli.output import emit_json, json_option, show, warn, write_figure

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
    from paceline.explanation import trace_tables as tables
    from paceline.explanation.trace_analysis import analyse_trace
    from paceline.importers.traces.otf2_archive import write_otf2
    from paceline.render.figures.heatmap import heatmap_info
    from paceline.render.files import write_text
    from paceline.render.step_tables import difference_tables, ranks_table
    from paceline.step.difference import step_difference
    from paceline.step.serialise import chrome_trace
    from paceline.units import plural

    found = analyse_trace(files, program)
    if out is not None:
        write_text(out, chrome_trace(found.typical))
    if otf2 is not None:
        write_otf2(found.typical, otf2)
    if heatmap is not None:
        write_figure(heatmap, heatmap_info(found.typical))
    if as_json:
        emit_json("trace", 1, tables.trace_json(found))
        return
    show(tables.trace_lines(found))
    repairs = tables.remedies_table(found)
    show([ranks_table(found.profile), *tables.messages_lines(found.profile)])
    groups = tables.groups_table(found)
    show([table for table in (groups, repairs) if table is not None])
    if against:
        other = analyse_trace(against, program)
        changes = step_difference(other.typical, found.typical)
        show(difference_tables(changes, "against", "this trace"))
    warn(f"warning: {text}" for text in found.trace.warnings)
    if found.trace.unread:
        warn([f"warning: skipped {plural(found.trace.unread, 'unreadable entry')}"])
    for title, path in (("Chrome trace", out), ("OTF2", otf2), ("Heat map", heatmap)):
        if path is not None:
            echo(f"{title}: {path}")
    drawn = ("otf2", "heatmap")
    next_line(same_job("trace", drop=drawn, out="step.json"), same_job("import", dry_run=True))
