"""Predict every row of a table with a model, on one process or several, and record the results."""

import csv
import io
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, field
from functools import partial

from paceline.parallel_map import (
    PARTS_PER_WORKER,
    Workers,
    cluster_size,
    parallel_map,
    parse_workers,
)
from paceline.validation.cases import Case, Mode, cases
from paceline.validation.forecast import Forecast, RowModel, Skipped
from paceline.validation.published_row import Configuration, PublishedRow
from paceline.validation.read_rows import RowProblem
from paceline.validation.reference_data import reference_table
from paceline.validation.row_schema import GIB
from paceline.validation.scores import RowOutcome

PREDICTION_COLUMNS = (
    *("id", "mode", "predicted_throughput", "low", "high", "skipped_because"),
    *("predicted_memory_gb", "fits_probability"),
    *("predicted_memory_gib", "predicted_first_stage_memory_gib"),
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

    ``predicted_memory_gib`` is of the fullest device. ``predicted_memory_gb`` is the same number:
    the name is that of ``memory_gb`` of the rows, which is in GiB (2**30 bytes) as well.
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
            writer.writerow([problem.id, run.mode, "", "", "", reason, *[""] * 4])
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
        return ("", "", "", outcome.skipped_because, *[""] * 4)
    memory, first = (
        None if size is None else size / GIB
        for size in (forecast.memory_bytes, forecast.first_stage_bytes)
    )
    return (
        *map(_digits, (forecast.throughput, forecast.low, forecast.high)),
        outcome.skipped_because,
        _digits(memory),
        _digits(forecast.fits_probability),
        _digits(memory),
        _digits(first),
    )


def _digits(value: float | None) -> str:
    return "" if value is None else f"{value:.7g}"


class AnsweredModel:
    """A model with cached forecasts; other rows are forwarded to the model."""

    def __init__(self, model: RowModel, answers: dict[str, Forecast | Skipped]) -> None:
        self._model, self._answers = model, answers

    @property
    def name(self) -> str:
        return self._model.name

    def predict(
        self, configuration: Configuration, baseline: PublishedRow | None
    ) -> Forecast | Skipped:
        if configuration.id in self._answers:
            return self._answers[configuration.id]
        return self._model.predict(configuration, baseline)


def answered_by_workers(
    model: RowModel,
    measurements: Sequence[PublishedRow],
    mode: Mode,
    workers: Workers,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> RowModel:
    """``model`` with forecasts of all rows, computed by ``workers`` (processes or a cluster).

    Results are identical to those of one process.
    """
    workers = parse_workers(workers)
    if workers == 1:
        return model
    ids = [measurement.configuration.id for measurement in measurements]
    size = max(1, len(ids) // (cluster_size(workers) * PARTS_PER_WORKER))
    parts = [ids[start : start + size] for start in range(0, len(ids), size)]
    done = 0

    def report(part: int) -> None:
        nonlocal done
        done += len(parts[part])
        progress(done, len(ids))

    forecast = partial(_answers, model, list(measurements), mode)
    found = parallel_map(forecast, parts, workers, report)
    return AnsweredModel(model, {key: answer for part in found for key, answer in part})


def _answers(
    model: RowModel, measurements: list[PublishedRow], mode: Mode, ids: list[str]
) -> list[tuple[str, Forecast | Skipped]]:
    """Forecasts of the rows with these ids that the mode applies to."""
    run = run_model(measurements, mode, model, only=set(ids))
    return [
        (
            outcome.measurement.configuration.id,
            outcome.forecast if outcome.forecast is not None else Skipped(outcome.skipped_because),
        )
        for outcome in run.outcomes
        if outcome.applicable
    ]
