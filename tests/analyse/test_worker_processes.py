"""Rows that worker processes predict have the same predictions and the same scores."""

import os

import pytest

from paceline.analyse.validation.cases import Mode
from paceline.analyse.validation.product import PacelineModel
from paceline.analyse.validation.reference import reference_table
from paceline.analyse.validation.run import run_model
from paceline.analyse.worker_processes import answered_by_workers
from paceline.errors import InputError


class NoAnswer(PacelineModel):
    def predict(self, configuration, baseline):
        raise AssertionError("every row was to be answered by workers")


def test_predictions_do_not_depend_on_the_number_of_workers():
    rows = reference_table().measurements[:24]
    told = []
    pooled = answered_by_workers(
        PacelineModel(None), rows, Mode.COLD, 2, lambda done, total: told.append((done, total))
    )
    pooled._model = NoAnswer(None)
    alone = run_model(rows, Mode.COLD, PacelineModel(None))
    assert run_model(rows, Mode.COLD, pooled).outcomes == alone.outcomes
    assert any(outcome.forecast for outcome in alone.outcomes)
    assert told[-1] == (24, 24)


def test_one_worker_is_this_process():
    model = PacelineModel(None)
    assert answered_by_workers(model, [], Mode.COLD, 1) is model


@pytest.mark.parametrize("workers", [0, -1, 4 * (os.cpu_count() or 1) + 1])
def test_impossible_numbers_of_workers_are_refused(workers):
    with pytest.raises(InputError, match="worker processes are impossible"):
        answered_by_workers(PacelineModel(None), [], Mode.COLD, workers)
