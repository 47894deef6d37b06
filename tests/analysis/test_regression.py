"""A regression or noise: on launches whose truth is known."""

import math

import numpy as np
import pytest
from builders import a_launch

from paceline.analysis.regression import false_positive_rate, time_changes
from paceline.analysis.regression_tables import campaign_warnings, changes_json, changes_table
from paceline.errors import InputError
from paceline.render.markup import latex_text, to_latex, to_markdown
from paceline.store import Outcome, RankSteps, Status


def study(name, seconds, **changes):
    return [
        a_launch(
            f"{name}{number:03d}",
            study=name,
            world_size=1,
            outcome=Outcome(Status.FINISHED, "", ranks=(RankSteps(0, (9.0, value)),)),
            **changes,
        )
        for number, value in enumerate(seconds)
    ]


def noisy(mean, count, seed, noise=0.01):
    return (mean * np.exp(np.random.default_rng(seed).normal(0, noise, count))).tolist()


@pytest.mark.parametrize(
    ("new", "verdict"),
    [
        (noisy(1.10, 5, 2), "slower"),
        (noisy(0.90, 5, 2), "faster"),
        (noisy(1.0, 5, 2, noise=0.05), "no change detected"),
        (noisy(1.0, 30, 2, noise=0.002), "same"),
        (noisy(1.01, 30, 2, noise=0.001), "slower, within the threshold"),
        ([1.5], "inconclusive: too few launches"),
    ],
)
def test_a_change_is_distinguished_from_noise(new, verdict):
    (change,) = time_changes(study("a", noisy(1.0, 8, 1, noise=0.003)), study("b", new))
    assert change.verdict == verdict
    assert change.is_regression == (verdict == "slower")


def campaigns(random, count, between, within, launches=5):
    """Studies of one job on as many days, whose means differ from day to day."""
    return [
        study(f"h{day}", np.exp(random.normal(random.normal(0, between), within, launches)))
        for day in range(count)
    ]


def test_one_campaign_each_has_a_warning_and_no_detectable_change():
    (change,) = time_changes(study("a", noisy(1.0, 5, 1)), study("b", noisy(1.0, 5, 2)))
    assert math.isnan(change.detectable)
    assert "detectable" not in str(changes_table([change])).lower()
    (warning,) = campaign_warnings([change])
    assert "cannot be distinguished from a different day" in warning
    assert "reported as different in 37 % of cases" in warning
    assert changes_json([change])[0]["verdict"] == change.verdict


@pytest.mark.parametrize("earlier", [3, 6])
@pytest.mark.thorough
def test_the_detectable_change_is_detected_in_eight_of_ten_cases(earlier):
    """Days differ by 3 %, launches of a day by 1 %; the stated change is that of a typical case."""
    random = np.random.default_rng(7)
    found = []
    for _ in range(200):
        base, new, *history = campaigns(random, 2 + earlier, 0.03, 0.01)
        found += time_changes(base, new, [one for day in history for one in day])
    assert np.mean([one.p_value < 0.05 for one in found]) <= 0.07
    assert campaign_warnings(found) == []
    assert "Detectable change: found with 80 % power" in str(changes_table(found[:1]))
    stated = np.median([one.detectable for one in found])
    seen = [
        not one.low <= 1 / (1 + stated) <= one.high for one in found
    ]  # as if new were slower by what was stated
    assert 0.72 <= np.mean(seen) <= 0.92


def test_variance_between_campaigns_counts_as_noise():
    base, new = study("a", noisy(1.0, 5, 1, 0.002)), study("b", noisy(1.03, 5, 2, 0.002))
    (alone,) = time_changes(base, new)
    assert alone.is_regression
    earlier = [1.0, 1.04, 0.97, 1.02, 1.05]
    history = [
        launch
        for number, mean in enumerate(earlier)
        for launch in study(f"h{number}", noisy(mean, 4, number, 0.002))
    ]
    (informed,) = time_changes(base, new, history)
    assert informed.test == "Welch with campaigns"
    assert informed.campaigns == 5
    assert not informed.is_regression


def test_launches_that_are_not_normal_are_compared_by_ranks():
    odd = [1.0, 1.01, 0.99, 1.0, 1.02, 0.98, 1.0, 1.01, 0.99, 3.0]
    (change,) = time_changes(study("a", odd), study("b", [1.2 * value for value in odd]))
    assert change.test == "Mann-Whitney"
    assert change.is_regression


def test_studies_without_a_common_configuration_are_rejected():
    with pytest.raises(InputError, match="no configuration in common"):
        time_changes(study("a", [1.0]), study("b", [1.0], batch_per_rank=8))


def test_drift_raises_the_false_positive_rate():
    assert false_positive_rate(noisy(1.0, 200, 3), 4) < 0.12
    drift = [1.0 + 0.01 * number for number in range(40)]
    assert false_positive_rate(drift, 4) > 0.9
    assert math.isnan(false_positive_rate([1.0, 1.1], 3))


def test_a_table_is_markdown_and_latex():
    table = changes_table(time_changes(study("a", [1.0, 1.1]), study("b", [1.0, 1.2])))
    text = to_markdown(table)
    assert text.startswith("| configuration | base (ms) |")
    assert "| --- | ---: |" in text
    latex = to_latex(table)
    assert r"\toprule" in latex
    assert latex.count(r"\\") == 2
    assert "two one-sided tests" in latex
    assert latex_text("a_b & 5 % ± 3 $x^2$ \\") == (
        r"a\_b \& 5 \% $\pm$ 3 \$x\textasciicircum{}2\$ \textbackslash{}"
    )
