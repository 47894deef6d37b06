"""Effects and variance of designs: Jain's textbook, statsmodels, and formulas written out."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from paceline.errors import InputError
from paceline.stats.anova import analyse_variance
from paceline.stats.factorial import two_level_analysis


def test_the_example_of_the_textbook():
    """Jain, example 18.1: memory and cache of a workstation, three replications."""
    responses = {
        (-1, -1): [15, 18, 12],
        (1, -1): [45, 48, 51],
        (-1, 1): [25, 28, 19],
        (1, 1): [75, 75, 81],
    }
    found = two_level_analysis(["memory", "cache"], responses)
    assert [effect.value for effect in found.effects] == pytest.approx([41.0, 21.5, 9.5, 5.0])
    assert found.error_variance * found.error_degrees == pytest.approx(102.0)
    shares = {effect.name: round(100 * effect.share, 2) for effect in found.effects}
    assert shares["memory"] == 78.88
    assert shares["cache"] == 15.40
    assert shares["memory x cache"] == 4.27
    assert 100 * found.error_share == pytest.approx(1.45, abs=0.005)
    assert all(effect.is_clear for effect in found.effects)


@pytest.mark.parametrize(("k", "replicates"), [(1, 2), (2, 3), (3, 3), (4, 2)])
def test_effects_and_shares_are_those_of_least_squares(k, replicates):
    random = np.random.default_rng(k)
    signs = list(itertools.product((-1, 1), repeat=k))
    responses = {one: random.normal(5 + one[0], 1, replicates).tolist() for one in signs}
    found = two_level_analysis([f"x{i}" for i in range(k)], responses)
    terms = [c for size in range(k + 1) for c in itertools.combinations(range(k), size)]
    rows = [one for one in signs for _ in range(replicates)]
    y = np.array([value for one in signs for value in responses[one]])
    x = np.array([[math.prod(row[i] for i in term) for term in terms] for row in rows], float)
    inverse = np.linalg.inv(x.T @ x)
    expected = inverse @ x.T @ y
    error = float(np.sum((y - x @ expected) ** 2))
    degrees = len(y) - len(terms)
    total = float(np.sum((y - y.mean()) ** 2))
    half = stats.t.ppf(0.975, degrees) * np.sqrt(error / degrees * np.diag(inverse))
    assert [e.value for e in found.effects] == pytest.approx(expected, rel=1e-8, abs=1e-12)
    assert [e.high - e.value for e in found.effects] == pytest.approx(half, rel=1e-8)
    shares = len(y) * expected[1:] ** 2 / total
    assert [e.share for e in found.effects][1:] == pytest.approx(shares, rel=1e-8, abs=1e-14)
    assert sum(e.share for e in found.effects) + found.error_share == pytest.approx(1.0)


def test_without_replicates_there_is_no_interval_and_without_a_cell_no_analysis():
    found = two_level_analysis(["a"], {(-1,): [1.0], (1,): [3.0]})
    assert found.effects[1].value == 1.0
    assert math.isnan(found.effects[1].low)
    assert not found.effects[1].is_clear
    with pytest.raises(InputError, match="1 of 2 combinations"):
        two_level_analysis(["a"], {(-1,): [1.0]})
    with pytest.raises(InputError, match=r"\[1, 2\] times"):
        two_level_analysis(["a"], {(-1,): [1.0, 2.0], (1,): [1.0]})


BATCHES = [64, 64, 64, 64, 64, 64, 32, 16, 32, 64, 16, 64, 64, 32, 16, 32, 32, 16, 64, 32]
BATCHES += [64, 64, 64, 16]
UNBALANCED = {"framework": list("jttjjtttjjjjjjjjjtttjtjj"), "batch": BATCHES}
SECONDS = [11.688, 9.939, 9.985, 12.196, 10.841, 10.697, 9.847, 10.056, 11.309, 12.399, 12.261]
SECONDS += [11.506, 11.061, 13.356, 12.039, 10.354, 11.496, 9.888, 10.722, 9.773, 10.761, 11.338]
SECONDS += [9.507, 10.086]


def test_variance_of_unequal_numbers_is_that_of_statsmodels():
    """Numbers of statsmodels 0.15.0: ols of framework * batch, anova_lm of type 2."""
    found = analyse_variance(UNBALANCED, SECONDS)
    theirs = {
        "framework": (7.286179288426244, 1, 8.78676999186219, 0.008306005122764921),
        "batch": (0.029656574751174107, 2, 0.01788217739158316, 0.9822941872952264),
        "framework x batch": (1.3337025558043551, 2, 0.8041894888605472, 0.46288948686267245),
    }
    for row in found.rows:
        ours = (row.squares, row.degrees, row.f_ratio, row.p_value)
        assert ours == pytest.approx(theirs[row.name], rel=1e-8)
    assert found.error_squares == pytest.approx(14.925988425000002, rel=1e-8)
    assert found.error_degrees == 18


def test_one_factor_is_the_analysis_of_scipy():
    random = np.random.default_rng(3)
    groups = [random.normal(mean, 1, size) for mean, size in ((1, 4), (2, 7), (1.5, 3))]
    levels = [name for name, own in zip("abc", groups, strict=True) for _ in own]
    found = analyse_variance({"x": levels}, np.concatenate(groups).tolist())
    theirs = stats.f_oneway(*groups)
    assert found.rows[0].f_ratio == pytest.approx(theirs.statistic, rel=1e-8)
    assert found.rows[0].p_value == pytest.approx(theirs.pvalue, rel=1e-8)


def test_shares_of_a_balanced_design_sum_to_one_and_nothing_left_has_no_test():
    factors = {"a": [0, 0, 1, 1] * 2, "b": [0, 1, 0, 1] * 2}
    found = analyse_variance(factors, [1.0, 2.0, 4.0, 9.0, 1.1, 2.2, 4.1, 8.8])
    assert sum(row.share for row in found.rows) + found.error_share == pytest.approx(1.0)
    single = analyse_variance({"a": [0, 1], "b": [3, 3]}, [1.0, 2.0])
    assert [row.name for row in single.rows] == ["a"]
    assert math.isnan(single.rows[0].p_value)
    with pytest.raises(InputError, match="no factor has two or more levels"):
        analyse_variance({"a": [1, 1]}, [1.0, 2.0])
