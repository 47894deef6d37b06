"""Tests of pairs and several groups against SciPy's."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from paceline.stats.anova import check_residuals, spearman_p_value
from paceline.stats.distributions import f_upper_tail
from paceline.stats.pairs import mann_whitney, mean_difference, welch
from paceline.stats.power import campaign_false_positives, detectable_change


@given(st.floats(0.001, 100.0), st.integers(1, 40), st.integers(1, 200))
def test_tails_are_those_of_scipy(value, first, second):
    assert f_upper_tail(value, first, second) == pytest.approx(
        stats.f.sf(value, first, second), rel=1e-8, abs=1e-200
    )


@pytest.mark.parametrize(("first", "second"), [(3, 9), (5, 5), (2, 4)])
def test_two_groups_as_by_scipy(first, second):
    random = np.random.default_rng(first)
    a, b = random.lognormal(0.1, 0.2, first), random.lognormal(0, 0.1, second)
    ours = welch(a, b)
    scaled = [np.log(one.mean()) + one / one.mean() - 1.0 for one in (a, b)]
    theirs = stats.ttest_ind(*scaled, equal_var=False)
    assert ours.p_value == pytest.approx(theirs.pvalue, rel=1e-9)
    interval = theirs.confidence_interval()
    assert np.log(ours.ratio_interval()) == pytest.approx([interval.low, interval.high], rel=1e-8)
    assert mann_whitney(a, b) == pytest.approx(stats.mannwhitneyu(a, b).pvalue, rel=1e-9)


def test_ties_are_corrected_for():
    a, b = [1.0, 2.0, 2.0, 3.0, 3.0] * 4, [2.0, 3.0, 3.0, 4.0, 4.0] * 4
    theirs = stats.mannwhitneyu(a, b, method="asymptotic").pvalue
    assert mann_whitney(a, b) == pytest.approx(theirs, rel=1e-9)
    assert mann_whitney([1.0] * 30, [1.0] * 30) == 1.0


def test_single_launches_give_nan():
    alone = welch([1.0], [2.0, 3.0])
    assert math.isnan(alone.p_value)
    assert math.isnan(alone.equivalence_p_value(0.05))
    assert math.isnan(alone.ratio_interval()[0])


def test_equal_launches_are_the_same_and_others_are_not():
    assert welch([1.0, 1.0], [1.0, 1.0]).p_value == 1.0
    assert welch([1.0, 1.0], [1.0, 1.0]).equivalence_p_value(0.01) == 0.0
    assert welch([1.0, 1.0], [2.0, 2.0]).p_value == 0.0
    wide = welch([1.0, 2.0, 0.5], [1.1, 0.4, 2.0])
    assert wide.p_value > 0.05, "no difference is found"
    assert wide.equivalence_p_value(0.05) > 0.05, "and none the less nothing is the same"


def test_no_loss_of_accuracy_is_a_statement_of_its_own():
    """Accuracies of runs with the same seeds; 0.01 less or more would matter."""
    fast, exact = [0.971, 0.969, 0.970, 0.972, 0.968], [0.970, 0.971, 0.969, 0.970, 0.971]
    assert mean_difference(fast, exact).tost_p_value(0.01) < 0.05
    assert mean_difference(fast, [0.96, 0.99, 0.95, 0.98, 0.97]).tost_p_value(0.01) > 0.05
    both_sides = [
        stats.ttest_ind(fast, np.add(exact, shift), equal_var=False, alternative=side).pvalue
        for shift, side in ((-0.01, "greater"), (0.01, "less"))
    ]
    assert mean_difference(fast, exact).tost_p_value(0.01) == pytest.approx(max(both_sides))


def test_the_detectable_change_is_detected_in_eight_of_ten_cases():
    change = detectable_change((6, 6), 0.03)
    random = np.random.default_rng(5)
    seen = sum(
        welch(
            (1 + change) * np.exp(random.normal(0, 0.03, 6)), np.exp(random.normal(0, 0.03, 6))
        ).p_value
        < 0.05
        for _ in range(2000)
    )
    assert 0.76 <= seen / 2000 <= 0.84
    assert math.isnan(detectable_change((1, 1), 0.1))


@pytest.mark.parametrize(("launches", "ratio"), [(3, 1.0), (10, 1.0), (20, 0.5)])
@pytest.mark.thorough
def test_false_positives_between_campaigns_as_simulated(launches, ratio):
    random = np.random.default_rng(launches)
    false = 0
    for _ in range(2000):
        days = [random.normal(day, 0.02, launches) for day in random.normal(0, 0.02 * ratio, 2)]
        false += stats.ttest_ind(*days).pvalue < 0.05
    assert campaign_false_positives(launches, launches, ratio) == pytest.approx(
        false / 2000, abs=0.03
    )
    assert campaign_false_positives(launches, launches, 0.0) == pytest.approx(0.05)


def test_residuals_show_drift_and_unequal_variance():
    random = np.random.default_rng(6)
    levels = np.repeat([1.0, 4.0, 16.0, 64.0], 15)
    noise = random.normal(size=60)
    even = check_residuals(noise.tolist(), levels.tolist())
    assert even.warnings == []
    growing = check_residuals((noise * levels).tolist(), levels.tolist())
    assert growing.transformation == "logarithm"
    shuffled = random.permutation(60)
    drifting = check_residuals((noise + shuffled / 10).tolist(), levels.tolist(), shuffled.tolist())
    assert any("drift with time" in line for line in drifting.warnings)
    assert spearman_p_value([1, 2, 3, 4, 5, 7], [2, 1, 4, 3, 6, 5]) == pytest.approx(
        stats.spearmanr([1, 2, 3, 4, 5, 7], [2, 1, 4, 3, 6, 5]).pvalue
    )
    assert math.isnan(check_residuals([0.0] * 6, [1.0] * 6).trend_p)
