"""Predict every row of a table with a model, and record the results."""

import csv
import io
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, field

from paceline.validation.cases import Case, Mode, cases
from paceline.validation.forecast import Forecast, RowModel
from paceline.validation.published_row import PublishedRow
from paceline.validation.read_rows import RowProblem
from paceline.validation.reference_data import reference_table
from paceline.validation.row_schema import GIB
from paceline.validation.scores import RowOutcome

PREDICTION_COLUMNS = (
    *("id", "mode", "predicted_throughput", "low", "high", "skipped_because"),
    *("predicted_memory_gb", "fits_probability"),
)
Progress = Callable[[int, int], None]
"""Called with the number of finished rows and of all rows."""


@dataclass(frozen=True)
class Run:
    """Outcomes of one model in one mode, one per usable row, in row order."""

    model: str
    mode: Mode
    outcomes: list[RowOutcome] = field(repr=False)


def run_model(
    measurements: Sequence[PublishedRow],
    mode: Mode,
    model: RowModel,
    progress: Progress | None = None,
    *,
    only: Container[str] | None = None,
) -> Run:
    """Predict every row that ``mode`` applies to with ``model``.

    ``only`` limits the ids to predict; other rows may still be baselines. A baseline that is not
    among the rows may be a reference row.
    """
    outcomes = []
    selected = [
        case
        for case in cases(measurements, mode, reference_table().by_id)
        if only is None or case.measurement.configuration.id in only
    ]
    for number, case in enumerate(selected, start=1):
        outcomes.append(_outcome(case, mode, model))
        if progress is not None:
            progress(number, len(selected))
    return Run(model.name, mode, outcomes)


def predictions_csv(runs: Sequence[Run], problems: Sequence[RowProblem] = ()) -> str:
    """One line per row and mode with the prediction, or the reason why there is none.

    ``predicted_memory_gb`` is in GiB (2**30 bytes), as ``memory_gb`` of the rows is.
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(PREDICTION_COLUMNS)
    for run in runs:
        for outcome in run.outcomes:
            identifier = outcome.measurement.configuration.id
            writer.writerow([identifier, run.mode, *_cells(outcome)])
        for problem in problems:
            reason = f"line {problem.line} of {problem.file}: {problem.reason}"
            writer.writerow([problem.id, run.mode, "", "", "", reason, "", ""])
    return out.getvalue()


def _outcome(case: Case, mode: Mode, model: RowModel) -> RowOutcome:
    if case.skip_reason:
        return RowOutcome(case.measurement, mode, None, case.skip_reason, applicable=False)
    answer = model.predict(case.measurement.configuration, case.baseline)
    if isinstance(answer, Forecast):
        return RowOutcome(case.measurement, mode, answer)
    return RowOutcome(case.measurement, mode, None, answer.reason)


def _cells(outcome: RowOutcome) -> tuple[str, ...]:
    """Throughput with its interval or the reason for its absence, memory, probability to fit."""
    forecast = outcome.forecast
    if forecast is None:
        return ("", "", "", outcome.skipped_because, "", "")
    memory = None if forecast.memory_bytes is None else forecast.memory_bytes / GIB
    return (
        *map(_digits, (forecast.throughput, forecast.low, forecast.high)),
        outcome.skipped_because,
        _digits(memory),
        _digits(forecast.fits_probability),
    )


def _digits(value: float | None) -> str:
    return "" if value is None else f"{value:.7g}"
