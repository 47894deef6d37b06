import math

import numpy as np
import pytest
from builders import a_launch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import ttest_ind

from paceline.analysis.configurations import grouped
from paceline.analysis.ranking import rank
from paceline.errors import InputError
from paceline.stats.distributions import SIGNIFICANCE
from paceline.stats.pairs import holm, log_differences
from paceline.store import Outcome, RankSteps, Status


def pair_chances(groups):
    return [one.p_value for one in log_differences(groups)]


VALUES = st.lists(st.floats(1.0, 100.0), min_size=2, max_size=8)


def a_group(framework, *seconds):
    launches = [
        a_launch(
            f"{framework}{number}",
            framework=framework,
            world_size=1,
            outcome=Outcome(Status.FINISHED, "", ranks=(RankSteps(0, (9.0, value)),)),
        )
        for number, value in enumerate(seconds)
    ]
    return framework, grouped(launches)[0]


def of_means(group):
    """Values whose mean is the logarithm of the mean, with the relative deviations."""
    values = np.asarray(group)
    return np.log(values.mean()) + values / values.mean() - 1.0


@given(VALUES, VALUES)
@pytest.mark.thorough
def test_two_groups_are_never_more_significant_than_in_students_test(first, second):
    """It equals that test for equal relative variances, and is more conservative otherwise."""
    scaled = [of_means(group) for group in (first, second)]
    if min(np.std(each) for each in scaled) > 1e-3:
        (chance,) = pair_chances([first, second])
        assert chance >= ttest_ind(*scaled).pvalue * (1 - 1e-6)
        (equal,) = pair_chances([first, [2 * value for value in first]])
        expected = ttest_ind(scaled[0], scaled[0] + np.log(2)).pvalue
        assert equal == pytest.approx(expected, rel=1e-6, abs=1e-12)


@given(st.lists(st.floats(0.0, 1.0), max_size=10))
def test_holm_never_decreases_p_values_and_keeps_their_order(chances):
    corrected = holm(chances)
    assert all(p <= c <= 1.0 for p, c in zip(chances, corrected, strict=True))
    order = sorted(range(len(chances)), key=lambda index: chances[index])
    assert [corrected[i] for i in order] == sorted(corrected)


def test_holm_by_hand():
    assert holm([0.01, 0.04, math.nan, 0.03]) == pytest.approx(
        [0.03, 0.06, math.nan, 0.06], nan_ok=True
    )


def test_faster_frameworks_come_first_and_ties_share_a_rank():
    ranking = rank(
        [
            a_group("slow", 2.00, 2.01, 1.99, 2.02),
            a_group("quick", 1.00, 1.01, 0.99, 1.02),
            a_group("alike", 1.01, 1.02, 0.98, 1.02),
        ]
    )
    assert ranking.names == ("quick", "alike", "slow")
    assert [ranking.rank_of(name) for name in ranking.names] == [1, 1, 3]
    assert ranking.tied_with("alike") == ["quick"]
    assert ranking.tied_with("slow") == []


def test_one_launch_gives_no_test():
    ranking = rank([a_group("a", 1.0), a_group("b", 9.0)])
    assert math.isnan(ranking.pairs[0].p_value)
    assert not ranking.pairs[0].different


@pytest.mark.parametrize("noise", [(0.05,) * 8, (0.03,) * 4 + (0.15,) * 4, (0.03,) * 7 + (0.2,)])
def test_false_positives_are_rare(noise):
    """An A/A comparison: about one in twenty rankings may call equals different."""
    random = np.random.default_rng(3)
    false = 0
    for _ in range(200):
        groups = [np.exp(random.normal(0.0, spread, 3)) for spread in noise]
        false += min(holm(pair_chances(groups))) < SIGNIFICANCE
    assert false <= 20


def test_three_launches_of_eight_detect_a_factor_of_two():
    random = np.random.default_rng(3)
    groups = [np.exp(random.normal(0.0, 0.08, 3)) for _ in range(7)]
    chances = holm(pair_chances([2 * np.exp(random.normal(0.0, 0.08, 3)), *groups]))
    assert max(chances[:7]) < SIGNIFICANCE
    assert min(chances[7:]) > SIGNIFICANCE


def test_equal_means_of_unequal_spread_are_equal():
    """Means of logarithms would differ by half the difference of the variances."""
    random = np.random.default_rng(5)
    false = 0
    for _ in range(1000):
        groups = [np.exp(random.normal(-(s**2) / 2, s, n)) for s, n in ((0.05, 20), (0.4, 20))]
        false += pair_chances(groups)[0] < SIGNIFICANCE
    assert false / 1000 <= 0.06


def test_duplicate_names_are_rejected():
    with pytest.raises(InputError, match="the same name"):
        rank([a_group("a", 1.0), a_group("a", 2.0)])


def test_the_table_names_the_first_of_many_ties():
    from paceline.analysis.ranking_tables import ranking_table

    equal = [a_group(f"f{number}", 1.0, 1.1, 0.9) for number in range(7)]
    told = [row[-1] for row in ranking_table(1, rank(equal)).rows]
    assert set(told) == {"all 6 others"}
    slower = [a_group("slow", 9.0, 9.1, 9.2), a_group("slower", 90.0, 91.0, 92.0)]
    told = [row[-1] for row in ranking_table(1, rank(equal + slower)).rows]
    assert told[0].endswith("and 3 more")
    assert told[-1] == "none"
