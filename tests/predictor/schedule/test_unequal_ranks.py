import numpy as np
import pytest
from builders import data_parallel_step
from hypothesis import given
from hypothesis import strategies as st

from paceline.errors import InputError
from paceline.predictor.plan.plan import Plan
from paceline.predictor.plan.sync_policy import synchronisation
from paceline.predictor.schedule.step_costs import LayerTime
from paceline.predictor.schedule.unequal_ranks import schedule_ranks, with_slowdowns

LAYERS = [LayerTime(f"layer{i}", 0.01, 0.02, 4e6) for i in range(5)]
FACTORS = st.lists(st.floats(0.5, 3.0), min_size=2, max_size=16)


def step(name="per_tensor", layers=LAYERS):
    return data_parallel_step(layers, synchronisation(name), lambda size: 1e-4 + 1e-9 * size)


def test_equal_ranks_take_what_the_representative_takes():
    alike = with_slowdowns(step(), Plan(dp=8), [1.0] * 8)
    assert alike.seconds == pytest.approx(step().seconds)
    assert alike.replica_seconds == pytest.approx([step().seconds] * 8)


def test_everybody_waits_for_a_straggler():
    slowed = with_slowdowns(step(), Plan(dp=4), [1.0, 1.0, 2.0, 1.0])
    alone = with_slowdowns(step(), Plan(dp=1), [2.0])
    assert slowed.seconds == pytest.approx(alone.seconds)
    assert slowed.computing_seconds[2] == pytest.approx(2 * slowed.computing_seconds[0])


def test_a_slow_device_of_a_tensor_group_slows_its_replica_only():
    slowed = with_slowdowns(step(), Plan(dp=2, tp=2), [1.0, 1.5, 1.0, 1.0])
    assert slowed.computing_seconds[0] == pytest.approx(1.5 * slowed.computing_seconds[1])


@given(FACTORS, st.randoms(use_true_random=False))
def test_permuting_ranks_changes_nothing(factors, order):
    shuffled = list(factors)
    order.shuffle(shuffled)
    plan = Plan(dp=len(factors))
    one, other = with_slowdowns(step(), plan, factors), with_slowdowns(step(), plan, shuffled)
    assert one.seconds == pytest.approx(other.seconds)


@given(FACTORS)
def test_the_step_is_at_least_that_of_its_slowest_rank_alone(factors):
    slowed = with_slowdowns(step(), Plan(dp=len(factors)), factors)
    slowest = with_slowdowns(step(), Plan(), [max(factors)])
    assert slowed.seconds >= slowest.seconds - 1e-12
    assert slowed.seconds <= slowest.seconds * (1 + 1e-12)


def test_some_ranks_become_a_timeline():
    slowed = with_slowdowns(step(), Plan(dp=3), [1.0, 2.0, 1.0])
    shown = slowed.step([1, 0])
    assert shown.ranks == [0, 1]
    assert shown.seconds == pytest.approx(slowed.seconds)


def test_wrong_numbers_of_factors_are_refused():
    with pytest.raises(InputError, match="2 slowdowns for 4 devices"):
        with_slowdowns(step(), Plan(dp=4), [1.0, 1.0])
    with pytest.raises(InputError, match="positive"):
        with_slowdowns(step(), Plan(dp=2), [1.0, 0.0])
    with pytest.raises(InputError, match="durations of shape"):
        schedule_ranks(step().tasks, np.ones((2, 3)))
