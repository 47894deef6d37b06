import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from paceline.errors import InputError
from paceline.stats.bootstrap import bca_interval, bootstrap_interval
from paceline.stats.estimate import estimate
from paceline.stats.modes import modes
from paceline.stats.normality import normality_p_value
from paceline.stats.stopping import LOOKS, StoppingRule

SECONDS = st.lists(st.floats(1e-6, 1e6), min_size=2, max_size=12)


@given(SECONDS)
def test_no_interval_reaches_zero_and_each_holds_its_mean(values):
    result = estimate(values)
    assert 0.0 < result.low <= result.mean * (1 + 1e-12)
    assert result.high >= result.mean * (1 - 1e-12)
    rate = result.rate_of(64.0)
    assert 0.0 < rate.low <= rate.mean * (1 + 1e-12) <= rate.high * (1 + 2e-12)


def test_one_launch_refuses_an_interval():
    assert math.isnan(estimate([2.0]).low)
    assert math.isnan(estimate([2.0]).rate_of(10.0).high)
    assert estimate([2.0]).rate_of(10.0).mean == 5.0
    with pytest.raises(InputError, match="no launch of this kind"):
        estimate([])


def test_seconds_are_averaged_and_then_inverted():
    """Two launches, one of 1 s and one of 3 s a step: 2 samples take 4 s, not 1.5 s."""
    assert estimate([1.0, 3.0]).rate_of(1.0).mean == 0.5


def test_the_interval_is_students_on_logarithms():
    values = [1.0, 1.1, 0.95, 1.3]
    logs = np.log(values)
    half = stats.t.ppf(0.975, 3) * logs.std(ddof=1) / 2
    result = estimate(values)
    assert result.high == pytest.approx(np.mean(values) * math.exp(half), rel=1e-10)
    assert estimate([-1.0, 1.0]).low < 0, "what is no duration has the interval of its values"


def test_a_number_of_launches_that_the_interval_decided_widens_it():
    values = [1.0, 1.1, 0.95, 1.3, 1.0]
    assert estimate(values, sequential=True).half_width > estimate(values).half_width


def test_the_bootstrap_is_that_of_scipy():
    values = np.random.default_rng(2).lognormal(0, 0.4, 25)
    low, high = bca_interval(values.tolist())
    theirs = stats.bootstrap(
        (values,), np.mean, n_resamples=20000, method="BCa", rng=np.random.default_rng(1)
    ).confidence_interval
    assert low == pytest.approx(theirs.low, rel=0.02)
    assert high == pytest.approx(theirs.high, rel=0.02)
    assert bca_interval([2.0, 2.0]) == (2.0, 2.0)


def test_normality_is_looked_at_from_eight_launches_on():
    assert math.isnan(normality_p_value([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]))
    assert math.isnan(normality_p_value([1.0] * 10))
    straight = stats.norm.ppf((np.arange(1, 21) - 0.375) / 20.25)
    assert normality_p_value(straight.tolist()) > 0.99
    assert normality_p_value([1.0] * 19 + [9.0]) < 1e-4


def test_differing_intervals_come_with_a_recommendation():
    assert bootstrap_interval([1.0, 1.1, 1.2]) is None
    similar = bootstrap_interval([1.0, 1.02, 0.99, 1.01, 1.03, 0.98, 1.0, 1.01])
    assert similar.normality == "plausible"
    odd = [1.0 + 0.001 * n for n in range(24)]
    few, many = bootstrap_interval([*odd[:9], 8.0]), bootstrap_interval([*odd, 8.0])
    assert few.normality == "doubtful"
    assert "use Student's t" in few.recommendation
    assert "use the bootstrap interval" in many.recommendation


def test_a_stopping_rule_looks_at_few_numbers_and_ends_at_its_cap():
    rule = StoppingRule(0.02, most=14)
    narrow, wide = [1.0, 1.001, 0.999, 1.0] * 2, [1.0, 1.3, 0.8, 1.1] * 2
    assert rule.looks == (8, 12, 14)
    assert rule.wanted([]) == LOOKS[0]
    assert rule.wanted(narrow) == 8, "narrow enough"
    assert rule.wanted(wide) == 12
    assert rule.wanted([*wide, *wide[:4]]) == 14
    assert rule.wanted([1.0] * 7) == 8, "no look before its time"
    assert rule.wanted([], failed=14) == 14, "what always fails ends too"
    with pytest.raises(InputError):
        StoppingRule(0.1, most=2)


def test_a_drift_and_two_modes_do_not_stop_a_configuration():
    rule = StoppingRule(0.05, most=30)
    assert rule.wanted([1.0 + 0.004 * number for number in range(8)]) == 12
    assert rule.wanted([1.0, 1.31, 1.0, 1.01, 1.3, 1.01, 1.32, 1.0]) == 12


def test_two_modes_widen_the_interval_to_both():
    found = estimate([1.0, 1.01, 0.99, 1.5, 1.0, 1.51, 1.49, 1.0])
    assert (found.low, found.high) == pytest.approx((1.0, 1.5), rel=0.01)
    assert [mode.launches for mode in modes([1.0, 1.01, 0.99, 1.5, 1.0, 1.51, 1.49, 1.0])] == [5, 3]


@pytest.mark.parametrize("count", [5, 8, 12, 30])
def test_one_launch_alone_and_normal_noise_are_no_mode(count):
    random = np.random.default_rng(count)
    found = [modes(np.exp(random.normal(0, 0.1, count)).tolist()) for _ in range(500)]
    assert sum(map(bool, found)) / 500 <= 0.03
    assert modes([1.0, 1.01, 0.99, 1.02, 1.0, 0.98, 9.0]) == ()
