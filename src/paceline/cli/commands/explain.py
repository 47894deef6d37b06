"""``paceline explain``: from the ideal step to the measured one."""

from pathlib import Path

import click

from paceline.cli.next_steps import next_line, same_job
from paceline.cli.options import store_option
from paceline.cli.output import emit_json, json_option, show

EXAMPLE = """
\b
Examples:
  paceline explain resnet44-1115-214119
  paceline explain resnet44-1115-214119 --processes 2 --json
"""


@click.command(epilog=EXAMPLE)
@click.argument("study")
@click.option("--processes", type=int, help="Which configuration [default: the largest].")
@click.option("--framework", help="Whose launches, in a comparison [default: the first].")
@store_option
@json_option
def command(
    study: str,
    processes: int | None,
    framework: str | None,
    store_path: Path | None,
    as_json: bool,
) -> None:
    """Say why a step is as long as it is, cause by cause, and what would shorten it.

    Takes the launches of measure, run, record, compare and import. One process beside several
    tells what sharing and communication cost; what the launches do not tell is said.
    """
    from paceline.api.measuring import explain
    from paceline.report.tables import explanation as tables
    from paceline.report.terminal import print_waterfall

    found = explain(study, processes=processes, framework=framework, store=store_path)
    if as_json:
        emit_json("explain", 2, {"study": study, **tables.explanation_json(found)})
        return
    print_waterfall(found.waterfall, tables.explanation_title(found))
    phases = tables.phases_table(found)
    show(tables.finding_lines(found))
    show([*([phases] if phases else []), *tables.missing_lines(found)])
    next_line(same_job("report"), same_job("list"))
