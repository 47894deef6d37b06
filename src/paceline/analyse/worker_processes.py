"""Validation on several cores or a cluster: rows are answered by workers, in any order."""

from collections.abc import Callable, Sequence
from functools import partial

from paceline.analyse.sharing_out import (
    PARTS_PER_WORKER,
    Workers,
    cluster_size,
    shared_out,
    workers_given,
)
from paceline.analyse.validation.cases import Mode
from paceline.analyse.validation.forecast import Forecast, RowModel, Skipped
from paceline.analyse.validation.measurement import Configuration, Measurement
from paceline.analyse.validation.run import run_model

Answer = tuple[str, Forecast | Skipped]


class AnsweredModel:
    """A model whose answers were found already; a row that was not asked goes to the model."""

    def __init__(self, model: RowModel, answers: dict[str, Forecast | Skipped]) -> None:
        self._model, self._answers = model, answers

    @property
    def name(self) -> str:
        """That of the model."""
        return self._model.name

    def predict(
        self, configuration: Configuration, baseline: Measurement | None
    ) -> Forecast | Skipped:
        """What the model answered."""
        if configuration.id in self._answers:
            return self._answers[configuration.id]
        return self._model.predict(configuration, baseline)


def answered_by_workers(
    model: RowModel,
    measurements: Sequence[Measurement],
    mode: Mode,
    workers: Workers,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> RowModel:
    """``model`` with its answers to all rows, found by ``workers``: processes, or a cluster.

    The answers are those of one process, whatever the order in which they come.
    """
    workers = workers_given(workers)
    if workers == 1:
        return model
    ids = [measurement.configuration.id for measurement in measurements]
    size = max(1, len(ids) // (cluster_size(workers) * PARTS_PER_WORKER))
    parts = [ids[start : start + size] for start in range(0, len(ids), size)]
    done = 0

    def tell(part: int) -> None:
        nonlocal done
        done += len(parts[part])
        progress(done, len(ids))

    ask = partial(_answers, model, list(measurements), mode)
    found = shared_out(ask, parts, workers, tell)
    return AnsweredModel(model, {key: answer for part in found for key, answer in part})


def _answers(
    model: RowModel, measurements: list[Measurement], mode: Mode, ids: list[str]
) -> list[Answer]:
    """What the model says of the rows with these ids, as far as the mode asks about them."""
    run = run_model(measurements, mode, model, only=set(ids))
    return [
        (
            outcome.measurement.configuration.id,
            outcome.forecast if outcome.forecast is not None else Skipped(outcome.skipped_because),
        )
        for outcome in run.outcomes
        if outcome.asked
    ]
