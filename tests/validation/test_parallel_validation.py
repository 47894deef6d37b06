"""Rows that worker processes predict have the same predictions and the same scores."""

import os

import pytest

from paceline.errors import InputError
from paceline.validation.cases import Mode
from paceline.validation.paceline_model import PacelineModel
from paceline.validation.reference_data import reference_table
from paceline.validation.run_validation import answered_by_workers, run_model

pytestmark = pytest.mark.thorough


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
def test_invalid_numbers_of_workers_are_rejected(workers):
    with pytest.raises(InputError, match="--workers must be between"):
        answered_by_workers(PacelineModel(None), [], Mode.COLD, workers)
