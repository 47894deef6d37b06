"""Regret of chosen layouts on jobs whose best layout is known."""

import dataclasses
import math

import pytest

from paceline.validation.cases import Mode
from paceline.validation.forecast import Forecast
from paceline.validation.layouts import layout_choices, rule_of_thumb_regrets, top_regret
from paceline.validation.published_row import Configuration, PublishedRow
from paceline.validation.scores import RowOutcome

BASE = Configuration(
    id="",
    family="gpt",
    framework="megatron",
    model="gpt2",
    precision="bf16",
    device="a100",
    devices=8,
    nodes=1,
    devices_per_node=8,
    global_batch=64.0,
    group="job",
)


def outcome(name, measured, predicted, group="job", applicable=True, **fields):
    what = dataclasses.replace(BASE, id=name, group=group, **fields)
    forecast = None if predicted is None else Forecast(predicted)
    return RowOutcome(PublishedRow(what, measured), Mode.LAYOUT, forecast, "", applicable)


JOB = [
    outcome("a", 100.0, 50.0, dp=8, tp=1),
    outcome("b", 80.0, 70.0, dp=4, tp=2),
    outcome("c", 60.0, 60.0, dp=2, tp=4),
    outcome("d", 120.0, None, dp=1, tp=8),
]


def test_regret_is_that_of_the_layout_predicted_fastest():
    """b is chosen; d, which could not be predicted, is the best: 120 / 80 - 1."""
    (own,) = layout_choices(JOB)
    assert (own.chosen, own.best, own.layouts) == ("b", "d", 4)
    assert own.regret == pytest.approx(0.5)
    # Ranks of a, b, c: measured 3, 2, 1; predicted 1, 3, 2.
    assert own.rank_correlation == pytest.approx(-0.5)


@pytest.mark.parametrize(("count", "regret"), [(1, 0.5), (2, 0.5), (3, 0.2)])
def test_regret_of_the_best_of_several(count, regret):
    assert top_regret(JOB, count) == pytest.approx([regret])


def test_regret_of_a_rule_of_thumb():
    """Most replicas: a."""
    assert rule_of_thumb_regrets(JOB) == pytest.approx([0.2])


def test_jobs_need_two_predicted_layouts():
    one = [JOB[0], JOB[3]]
    assert layout_choices(one) == []
    assert top_regret(one, 1) == []
    two = [*JOB[:2]]
    assert len(layout_choices(two)) == len(top_regret(two, 1)) == 1


def test_jobs_are_not_mixed():
    other = [outcome("x", 10.0, 2.0, "other", dp=8), outcome("y", 20.0, 1.0, "other", dp=4)]
    skipped = [outcome("z", 1000.0, 1000.0, applicable=False, dp=4, tp=1)]
    choices = layout_choices([*JOB, *other, *skipped])
    assert {own.group: own.regret for own in choices} == pytest.approx({"job": 0.5, "other": 1.0})
    assert sorted(top_regret([*JOB, *other, *skipped], 1)) == pytest.approx([0.5, 1.0])
    assert not any(math.isnan(own.regret) for own in choices)
