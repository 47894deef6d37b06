"""``paceline validate``: score predictions against published measurements."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from paceline.cli.echo import echo
from paceline.cli.options import workers_option
from paceline.cli.output import json_text, next_line, show
from paceline.units import plural

if TYPE_CHECKING:
    from paceline.parallel_map import Workers
    from paceline.validation.cases import Mode
    from paceline.validation.read_rows import MeasurementTable
    from paceline.validation.validation_summary import ModeSummary

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
    help="CSV file in the schema of 'paceline published --export'; repeatable.  "
    "[default: the published measurements]",
)
@click.option(
    "--mode",
    "modes",
    type=click.Choice(_MODES),
    multiple=True,
    help="baseline: predict from the baseline row of the group; cold: without measurements; "
    "layout: which layout is fastest.  [default: all]",
)
@click.option(
    "--by",
    metavar="COLUMN[,COLUMN]",
    default="",
    help="Additional columns to split the scores by, such as framework,device.",
)
@click.option(
    "--hold-out",
    type=click.Choice(["group", "source", "generation", "framework", "model", "network", "scale"]),
    default="group",
    show_default=True,
    help="Rows excluded when fitting the corrections for a row: its own table (group), or all of "
    "the same source, device generation, framework, model family, network or scale.",
)
@workers_option
@click.option(
    "--json", "json_file", metavar="FILE", help="Write the scores as JSON; - for standard output."
)
@click.option(
    "--predictions",
    type=_File,
    metavar="FILE",
    help="Write the prediction of each row as CSV; memory in GiB.",
)
@click.option("--scoreboard", type=_File, metavar="FILE", help="Write the scoreboard as Markdown.")
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
    """Score predictions against published measurements, in comparison with null models.

    Each row is predicted as 'paceline predict' would, with corrections fitted without its own
    table; its measured throughput is used for the score only. Other files in the same schema can
    be scored with --data, including rows with model sizes instead of names, and failed runs.

    \b
    Examples:
      paceline validate --mode baseline --by framework
      paceline validate --mode cold --hold-out source --workers 2
      paceline validate --data mine.csv --predictions out.csv
    """
    from paceline.validation.cases import Mode
    from paceline.validation.hold_out import HoldOut
    from paceline.validation.row_filters import attribute_of

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
    from paceline.validation.read_rows import read_tables
    from paceline.validation.reference_data import reference_table

    return read_tables(files) if files else reference_table()


def _summaries(
    table: "MeasurementTable",
    modes: "list[Mode]",
    columns: list[str],
    hold_out: Any,
    workers: "Workers",
) -> "dict[Mode, ModeSummary]":
    from paceline.cli.progress import rows_progress
    from paceline.validation.paceline_model import PacelineModel, PhysicsAlone
    from paceline.validation.run_validation import answered_by_workers
    from paceline.validation.validation_summary import summarise

    model, compared = PacelineModel(hold_out), [PhysicsAlone()]
    summaries = {}
    for mode in modes:
        with rows_progress(f"{mode}: {plural(len(table.measurements), 'row')}") as progress:
            rows = table.measurements
            answered = answered_by_workers(model, rows, mode, workers, progress)
            summaries[mode] = summarise(rows, mode, answered, columns, progress, compared)
    return summaries


def _write_predictions(
    path: Path, summaries: "dict[Mode, ModeSummary]", table: "MeasurementTable"
) -> None:
    from paceline.render.files import write_text
    from paceline.validation.run_validation import predictions_csv

    runs = [summary.run for summary in summaries.values()]
    write_text(path, predictions_csv(runs, table.problems))


def _write_json(
    path: str,
    summaries: "dict[Mode, ModeSummary]",
    table: "MeasurementTable",
    hold_out: str,
) -> None:
    from dataclasses import asdict

    from paceline.render.files import write_text
    from paceline.validation.hold_out import reference_rows

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
        echo(text)
    else:
        write_text(Path(path), text + "\n")


def _write_scoreboard(path: Path) -> None:
    from paceline.predictor.uncertainty.correction_table import shipped_corrections
    from paceline.render.files import write_text
    from paceline.validation.reference_data import layout_table, reference_table
    from paceline.validation.scoreboard import board, board_page

    def on_stage(text: str) -> None:
        echo(f"  {text}", err=True)

    found = board(reference_table().measurements, layout_table().measurements, on_stage)
    write_text(path, board_page(found, shipped_corrections().fitted_on))


def _show(table: "MeasurementTable", summaries: "dict[Mode, ModeSummary]", hold_out: str) -> None:
    import textwrap
    from collections import Counter

    from paceline.validation.hold_out import reference_rows
    from paceline.validation.score_tables import mode_table, skipped_lines

    for remark in table.remarks:
        echo(textwrap.fill(f"note: {remark}", _WIDTH, subsequent_indent="    "))
    if table.problems:
        echo(f"Skipped {plural(len(table.problems), 'invalid row')} (--json lists all):")
        for problem in table.problems[:_REASONS]:
            echo(_line(f"{problem.file} line {problem.line} ({problem.id}): {problem.reason}"))
        if len(table.problems) > _REASONS:
            counts = Counter(problem.reason for problem in table.problems)
            for reason, count in counts.most_common(_REASONS):
                echo(_line(f"{count} x {reason}"))
    if not table.measurements:
        echo("No rows to score.")
        return
    published = reference_rows(table.measurements)
    echo(
        f"{published:,} of {plural(len(table.measurements), 'row')} published; corrections are "
        f"fitted without the {hold_out} of each row.\n"
    )
    for summary in summaries.values():
        show([mode_table(summary)])
        for line in skipped_lines(summary, _REASONS):
            echo(textwrap.fill(line, _WIDTH, subsequent_indent="    "))
        echo("")


def _line(text: str) -> str:
    import textwrap

    return textwrap.fill(text, _WIDTH, initial_indent="  ", subsequent_indent="    ")
