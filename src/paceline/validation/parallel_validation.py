"""Validation on several cores or a cluster: workers predict rows in any order."""

from collections.abc import Callable, Sequence
from functools import partial

from paceline.parallel_map import (
    PARTS_PER_WORKER,
    Workers,
    cluster_size,
    parallel_map,
    parse_workers,
)
from paceline.validation.cases import Mode
from paceline.validation.forecast import Forecast, RowModel, Skipped
from paceline.validation.published_row import Configuration, PublishedRow
from paceline.validation.run_validation import run_model

Answer = tuple[str, Forecast | Skipped]


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
) -> list[Answer]:
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
