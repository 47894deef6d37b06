"""Validation on several cores: rows are answered by worker processes, in any order."""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context

from paceline.analyse.validation.cases import Mode
from paceline.analyse.validation.forecast import Forecast, RowModel, Skipped
from paceline.analyse.validation.measurement import Configuration, Measurement
from paceline.analyse.validation.run import run_model
from paceline.errors import InputError

PARTS_PER_WORKER = 4
"""Parts of the rows for each worker, so that one that got hard rows holds up no other."""

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
    workers: int,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> RowModel:
    """``model`` with its answers to all rows, found by ``workers`` processes.

    The answers are those of one process, whatever the order in which they come.
    """
    if workers == 1:
        return model
    if not 1 < workers <= 4 * (os.cpu_count() or 1):
        raise InputError(
            f"{workers} worker processes are impossible here",
            f"give 1 to {4 * (os.cpu_count() or 1)}; there are {os.cpu_count()} cores",
        )
    ids = [measurement.configuration.id for measurement in measurements]
    size = max(1, len(ids) // (workers * PARTS_PER_WORKER))
    parts = [ids[start : start + size] for start in range(0, len(ids), size)]
    answers: dict[str, Forecast | Skipped] = {}
    done = 0
    with ProcessPoolExecutor(
        workers, get_context("spawn"), _begin, (model, list(measurements), mode)
    ) as pool:
        waiting = {pool.submit(_answers, part): len(part) for part in parts}
        try:
            for future in as_completed(waiting):
                answers.update(future.result())
                done += waiting[future]
                progress(done, len(ids))
        except BrokenProcessPool as error:
            raise InputError(
                "a worker process was killed", "is there memory for so many? give fewer --workers"
            ) from error
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    return AnsweredModel(model, answers)


_asked: tuple[RowModel, list[Measurement], Mode]
"""What this worker process is asked about; rows are sent to it once."""


def _begin(model: RowModel, measurements: list[Measurement], mode: Mode) -> None:
    global _asked
    _asked = model, measurements, mode


def _answers(ids: list[str]) -> list[Answer]:
    """What the model says of the rows with these ids, as far as the mode asks about them."""
    model, measurements, mode = _asked
    run = run_model(measurements, mode, model, only=set(ids))
    return [
        (
            outcome.measurement.configuration.id,
            outcome.forecast if outcome.forecast is not None else Skipped(outcome.skipped_because),
        )
        for outcome in run.outcomes
        if outcome.asked
    ]
