"""``paceline trace``: what a trace of any program tells, without importing it."""

from pathlib import Path

import click

from paceline.cli.next_steps import next_line, same_job
from paceline.cli.options import figure_option, out_option
from paceline.cli.output import emit_json, json_option, show, warn, write_figure

EXAMPLE = """
\b
Examples:
  paceline trace trace-rank0.json trace-rank1.json
  paceline trace operations.csv --heatmap map.svg
  paceline trace trace-rank0.json --out step.json     (open it in Perfetto)
  paceline trace trace-rank1.json --against trace-rank0.json
"""


@click.command(epilog=EXAMPLE)
@click.argument(
    "files", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True, readable=True)
)
@click.option("--program", help="What wrote the files [default: found from their content].")
@click.option(
    "--against",
    multiple=True,
    type=click.Path(path_type=Path, exists=True, readable=True),
    help="Another trace to compare with, task by task; once per file.",
)
@out_option("--out", "Write the typical step, all ranks on one clock, as a Chrome trace.")
@click.option(
    "--otf2",
    type=click.Path(path_type=Path, file_okay=False),
    help="Write the typical step as an OTF2 archive (for Vampir and others) to this directory.",
)
@figure_option("--heatmap", "Write a map of ranks by time: where each is busy, waits, is idle")
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
    """Say where the time of a trace goes, who is slow, and what repairing it is worth.

    Takes one file, or one per rank: PyTorch's profiler, Horovod's timeline, any Chrome trace with
    telling names, OTF2 and others, or a table with the columns rank, step, operation, start and
    duration (stage, dp_rank and the like say where a rank stands).
    """
    from paceline.analyse.trace_analysis import analyse_trace
    from paceline.measurement.traces.otf2_archive import write_otf2
    from paceline.report.figures.heatmap import heatmap_info
    from paceline.report.files import write_text
    from paceline.report.tables import trace as tables
    from paceline.report.tables.steps import difference_tables, ranks_table
    from paceline.step.chrome_trace import chrome_trace
    from paceline.step.difference import step_difference

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
    repairs = tables.repairs_table(found)
    show([ranks_table(found.profile), *tables.messages_lines(found.profile)])
    groups = tables.groups_table(found)
    show([table for table in (groups, repairs) if table is not None])
    if against:
        other = analyse_trace(against, program)
        changes = step_difference(other.typical, found.typical)
        show(difference_tables(changes, "against", "this trace"))
    warn(f"warning: {words}" for words in found.trace.warnings)
    if found.trace.unread:
        warn([f"warning: {found.trace.unread} entries could not be read"])
    for words, path in (("Chrome trace", out), ("OTF2", otf2), ("Heat map", heatmap)):
        if path is not None:
            click.echo(f"{words}: {path}")
    drawn = ("otf2", "heatmap")
    next_line(same_job("trace", drop=drawn, out="step.json"), same_job("import", dry_run=True))
