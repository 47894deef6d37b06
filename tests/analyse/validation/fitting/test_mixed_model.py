"""The mixed model finds effects that are there, and shrinks those it cannot see."""

import numpy as np
import pytest
from paceline.predictor.fitted.circumstances import Circumstances
from paceline.predictor.fitted.effects import Factor, Quantity

from paceline.analyse.validation.fitting.mixed_model import Parameters, fit

QUANTITY = Quantity("computing", 0.0, 1.0, (Factor("device", 0.5), Factor("site", 0.5)))


def rows(count, devices=("slow", "fast"), seed=1):
    choose = np.random.default_rng(seed)
    return [Circumstances(device=str(choose.choice(devices))) for _ in range(count)]


def fitted(circumstances, measured, weights=None):
    parameters = Parameters.of((QUANTITY,), circumstances)
    members = parameters.members(QUANTITY, circumstances)
    result = fit(
        lambda vector: (members @ vector, members),
        measured,
        np.ones(len(measured)) if weights is None else weights,
        parameters,
        noise=0.05,
    )
    return parameters, result


def test_effects_are_found_and_named():
    where = rows(400)
    noise = np.random.default_rng(2).normal(0, 0.02, 400)
    truth = np.array([0.3 if each.device == "slow" else -0.3 for each in where])
    parameters, result = fitted(where, truth + noise)
    effects = parameters.effects(result.vector)
    gap = effects.levels["computing"]["device"]["slow"]
    gap -= effects.levels["computing"]["device"]["fast"]
    assert gap == pytest.approx(0.6, abs=0.02)
    assert 1 < result.effective_count < 3


def test_a_few_strange_rows_do_not_bend_the_rest():
    where = rows(200, devices=("one",))
    measured = np.full(200, 0.2)
    measured[:10] = 3.0
    parameters, result = fitted(where, measured)
    value = parameters.effects(result.vector).value("computing", where[0])
    assert value == pytest.approx(0.2, abs=0.03)


def test_rows_that_are_held_out_teach_nothing():
    where = rows(100, devices=("one", "two"))
    measured = np.array([0.4 if each.device == "two" else 0.0 for each in where])
    seen = np.array([float(each.device == "one") for each in where])
    parameters, result = fitted(where, measured, seen)
    effects = parameters.effects(result.vector)
    assert "two" not in effects.levels.get("computing", {}).get("device", {})


def test_one_row_moves_an_effect_less_than_many():
    alone = [Circumstances(device="rare")] + [Circumstances(device="usual")] * 50
    once = np.array([0.5] + [0.0] * 50)
    often = [Circumstances(device="rare")] * 50 + [Circumstances(device="usual")] * 50
    many = np.array([0.5] * 50 + [0.0] * 50)

    def rare(where, measured):
        parameters, result = fitted(where, measured)
        effects = parameters.effects(result.vector)
        return effects.value("computing", Circumstances(device="rare"))

    assert 0 < rare(alone, once) < rare(often, many) <= 0.5
