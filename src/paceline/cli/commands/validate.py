"""`paceline validate`: predictions against published measurements."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from paceline.cli.options import workers_option
from paceline.cli.output import json_text, next_line, show
from paceline.cli.say import say

if TYPE_CHECKING:
    from paceline.analyse.sharing_out import Workers
    from paceline.analyse.validation.cases import Mode
    from paceline.analyse.validation.reading import MeasurementTable
    from paceline.analyse.validation.summary import ModeSummary

_MODES = ("baseline", "cold", "layout")
_REASONS = 8
_WIDTH = 100
_File = click.Path(path_type=Path, dir_okay=False)


@click.command(name="validate")
@click.option(
    "--data",
    "files",
    type=click.Path(path_type=Path),
    multiple=True,
    help="CSV in the schema of 'paceline published --export'; may be repeated.  "
    "[default: the published measurements]",
)
@click.option(
    "--mode",
    "modes",
    type=click.Choice(_MODES),
    multiple=True,
    help="baseline: rows from their group's baseline; cold: from nothing measured; layout: which "
    "layout is fastest.  [default: all]",
)
@click.option("--by", default="", help="Further columns to split by, e.g. framework,device.")
@click.option(
    "--hold-out",
    type=click.Choice(["group", "source", "generation", "framework", "model", "network", "scale"]),
    default="group",
    show_default=True,
    help="What the corrections for a row may not have seen: its own table, or everything of the "
    "same source, device generation, framework, family of models, network, or scale.",
)
@workers_option
@click.option("--json", "json_file", metavar="FILE", help="Write scores as JSON; - prints them.")
@click.option("--predictions", type=_File, metavar="FILE", help="Write one CSV line per row.")
@click.option("--scoreboard", type=_File, metavar="FILE", help="Write the scoreboard page.")
def command(
    files: tuple[Path, ...],
    modes: tuple[str, ...],
    by: str,
    hold_out: str,
    workers: "Workers",
    json_file: str | None,
    predictions: Path | None,
    scoreboard: Path | None,
) -> None:
    """Score predictions on published measurements, beside null models.

    Rows are answered by what 'paceline predict' does, with corrections that come from other rows,
    never from the row's own table; a row's throughput is used for nothing but its score. Any file
    in the same schema can be scored, also rows that give sizes of a model or that failed.

    \b
    Examples:
      paceline validate --mode baseline --by framework
      paceline validate --mode cold --hold-out source --workers 2
      paceline validate --data mine.csv --predictions out.csv
    """
    from paceline.analyse.validation.cases import Mode
    from paceline.analyse.validation.hold_out import HoldOut
    from paceline.analyse.validation.selection import attribute_of

    columns = [attribute_of(name.strip()) for name in by.split(",") if name.strip()]
    table = _table(files)
    wanted = [Mode(mode) for mode in _MODES if mode in modes or not modes]
    summaries = _summaries(table, wanted, columns, HoldOut(hold_out), workers)
    if predictions is not None:
        _write_predictions(predictions, summaries, table)
    if scoreboard is not None:
        _write_scoreboard(scoreboard)
    if json_file is not None:
        _write_json(json_file, summaries, table, hold_out)
    if json_file != "-":
        _show(table, summaries, hold_out)
        next_line("paceline published", "paceline validate --predictions predictions.csv")


def _table(files: tuple[Path, ...]) -> "MeasurementTable":
    from paceline.analyse.validation.reading import read_tables
    from paceline.analyse.validation.reference import reference_table

    return read_tables(files) if files else reference_table()


def _summaries(
    table: "MeasurementTable",
    modes: "list[Mode]",
    columns: list[str],
    hold_out: Any,
    workers: "Workers",
) -> "dict[Mode, ModeSummary]":
    from paceline.analyse.validation.product import PacelineModel, PhysicsAlone
    from paceline.analyse.validation.summary import summarise
    from paceline.analyse.worker_processes import answered_by_workers
    from paceline.cli.progress import rows_progress

    model, beside = PacelineModel(hold_out), [PhysicsAlone()]
    summaries = {}
    for mode in modes:
        with rows_progress(f"{mode}: {len(table.measurements)} rows") as progress:
            rows = table.measurements
            answered = answered_by_workers(model, rows, mode, workers, progress)
            summaries[mode] = summarise(rows, mode, answered, columns, progress, beside)
    return summaries


def _write_predictions(
    path: Path, summaries: "dict[Mode, ModeSummary]", table: "MeasurementTable"
) -> None:
    from paceline.analyse.validation.run import predictions_csv
    from paceline.report.files import write_text

    runs = [summary.run for summary in summaries.values()]
    write_text(path, predictions_csv(runs, table.problems))


def _write_json(
    path: str,
    summaries: "dict[Mode, ModeSummary]",
    table: "MeasurementTable",
    hold_out: str,
) -> None:
    from dataclasses import asdict

    from paceline.analyse.validation.hold_out import reference_rows
    from paceline.report.files import write_text

    document = {
        "rows": len(table.measurements),
        "rows_held_out": reference_rows(table.measurements),
        "unusable_rows": [asdict(problem) for problem in table.problems],
        "remarks": table.remarks,
        "held_out": hold_out,
        "modes": [summary.to_json() for summary in summaries.values()],
    }
    text = json_text("validation", 1, document)
    if path == "-":
        say(text)
    else:
        write_text(Path(path), text + "\n")


def _write_scoreboard(path: Path) -> None:
    from paceline.analyse.validation.reference import layout_table, reference_table
    from paceline.analyse.validation.scoreboard import board, board_page
    from paceline.predictor.corrections.table import shipped_corrections
    from paceline.report.files import write_text

    def tell(words: str) -> None:
        say(f"  {words}", err=True)

    found = board(reference_table().measurements, layout_table().measurements, tell)
    write_text(path, board_page(found, shipped_corrections().fitted_on))


def _show(table: "MeasurementTable", summaries: "dict[Mode, ModeSummary]", hold_out: str) -> None:
    import textwrap
    from collections import Counter

    from paceline.analyse.validation.hold_out import reference_rows
    from paceline.report.tables.validation import mode_table, skipped_lines

    for remark in table.remarks:
        say(textwrap.fill(f"note: {remark}", _WIDTH, subsequent_indent="    "))
    if table.problems:
        say(f"{len(table.problems)} rows cannot be used (all of them: --predictions, --json):")
        for problem in table.problems[:_REASONS]:
            say(_line(f"{problem.file} line {problem.line} ({problem.id}): {problem.reason}"))
        if len(table.problems) > _REASONS:
            counts = Counter(problem.reason for problem in table.problems)
            for reason, count in counts.most_common(_REASONS):
                say(_line(f"{count} x {reason}"))
    if not table.measurements:
        say("no row to score")
        return
    published = reference_rows(table.measurements)
    say(
        f"{published} of {len(table.measurements)} rows are published ones: "
        f"their corrections are fitted without their {hold_out}.\n"
    )
    for summary in summaries.values():
        show([mode_table(summary)])
        for line in skipped_lines(summary, _REASONS):
            say(textwrap.fill(line, _WIDTH, subsequent_indent="    "))
        say("")


def _line(text: str) -> str:
    import textwrap

    return textwrap.fill(text, _WIDTH, initial_indent="  ", subsequent_indent="    ")
