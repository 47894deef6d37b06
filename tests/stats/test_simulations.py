"""What the intervals and tests promise, held to by simulation: seeded, on known truth."""

import numpy as np
import pytest

from paceline.stats.bootstrap import bca_interval
from paceline.stats.distributions import SIGNIFICANCE
from paceline.stats.estimate import estimate
from paceline.stats.normality import normality_p_value
from paceline.stats.pairs import holm, log_differences, mann_whitney, welch
from paceline.stats.stopping import StoppingRule
from paceline.stats.warmup import Steadiness, steady_state

pytestmark = pytest.mark.thorough

ROUNDS = 3000


def launch_means(random, launches, steps=20, launch_noise=0.04, step_noise=0.05, rho=0.6):
    """Mean seconds of launches: an effect of the launch, and steps that follow each other."""
    effects = random.normal(0.0, launch_noise, (launches, 1))
    shocks = random.normal(0.0, step_noise, (launches, steps))
    noise = np.empty_like(shocks)
    noise[:, 0] = shocks[:, 0]
    for step in range(1, steps):
        noise[:, step] = rho * noise[:, step - 1] + np.sqrt(1 - rho**2) * shocks[:, step]
    return (1.0 + effects + noise).mean(axis=1)


@pytest.mark.parametrize("launches", [3, 5, 10])
def test_intervals_cover_the_truth(launches):
    random = np.random.default_rng(launches)
    values = [launch_means(random, launches) for _ in range(ROUNDS)]
    covered = sum((e := estimate(one.tolist())).low <= 1.0 <= e.high for one in values)
    assert 0.92 <= covered / ROUNDS <= 0.97


def test_steps_as_if_independent_would_not_cover_it():
    """Why the launch is the unit: the same data, a standard error over steps."""
    random = np.random.default_rng(4)
    covered = 0
    for _ in range(300):
        steps = 1.0 + random.normal(0, 0.04) + random.normal(0, 0.05, 100)
        interval = estimate(steps.tolist())
        covered += interval.low <= 1.0 <= interval.high
    assert covered / 300 < 0.5


@pytest.mark.parametrize("noise", [0.01, 0.03, 0.05, 0.15])
def test_intervals_cover_the_truth_when_launches_were_added_until_they_were_narrow(noise):
    rule, random = StoppingRule(0.03, most=30), np.random.default_rng(7)
    covered = 0
    for _ in range(ROUNDS):
        values = launch_means(random, 30, launch_noise=noise, step_noise=noise).tolist()
        count = 0
        while (wanted := rule.wanted(values[:count])) > count:
            count = wanted
        interval = estimate(values[:count], sequential=True)
        covered += interval.low <= 1.0 <= interval.high
    assert 0.92 <= covered / ROUNDS <= 0.97


@pytest.mark.parametrize(("first", "second"), [(5, 5), (3, 3), (3, 12), (12, 4)])
def test_equals_are_called_different_one_time_in_twenty(first, second):
    random = np.random.default_rng(first * 100 + second)
    false = sum(
        welch(launch_means(random, first), launch_means(random, second)).p_value < SIGNIFICANCE
        for _ in range(ROUNDS)
    )
    assert 0.03 <= false / ROUNDS <= 0.07


@pytest.mark.parametrize("count", [2, 4])
def test_equals_of_a_ranking_are_called_different_no_more_often(count):
    """Pooled with care and corrected for being several: the whole ranking errs 1 to 7 in 100."""
    random = np.random.default_rng(count)
    false = 0
    for _ in range(1500):
        groups = [launch_means(random, 4).tolist() for _ in range(count)]
        false += min(holm([one.p_value for one in log_differences(groups)])) < SIGNIFICANCE
    assert 0.01 <= false / 1500 <= 0.07


def test_equals_by_ranks_are_called_different_no_more_often():
    random = np.random.default_rng(8)
    false = sum(
        mann_whitney(random.exponential(size=8), random.exponential(size=8)) < SIGNIFICANCE
        for _ in range(ROUNDS)
    )
    assert 0.03 <= false / ROUNDS <= 0.07


def test_ratio_intervals_cover_the_ratio_of_unequal_groups():
    random = np.random.default_rng(9)
    covered = 0
    for _ in range(ROUNDS):
        slow = 1.3 * np.exp(random.normal(0, 0.02, 4))
        low, high = welch(slow, np.exp(random.normal(0, 0.06, 9))).ratio_interval()
        covered += low <= 1.3 <= high
    assert 0.92 <= covered / ROUNDS <= 0.97


def test_false_equivalence_rate_is_five_percent():
    random = np.random.default_rng(10)
    same = sum(
        welch(
            1.05 * np.exp(random.normal(0, 0.02, 6)), np.exp(random.normal(0, 0.02, 6))
        ).equivalence_p_value(0.05)
        < SIGNIFICANCE
        for _ in range(ROUNDS)
    )
    assert 0.03 <= same / ROUNDS <= 0.07


@pytest.mark.parametrize("count", [8, 15, 40])
def test_normal_values_are_called_normal_and_others_are_found(count):
    random = np.random.default_rng(count)
    false = sum(normality_p_value(random.normal(size=count)) < SIGNIFICANCE for _ in range(ROUNDS))
    assert 0.03 <= false / ROUNDS <= 0.07
    found = sum(normality_p_value(random.exponential(size=count)) < 0.05 for _ in range(300))
    assert found / 300 > (0.25 if count == 8 else 0.6)


def test_bootstrap_covers_the_mean_of_skewed_data():
    random = np.random.default_rng(11)
    covered = 0
    for _ in range(400):
        low, high = bca_interval(random.exponential(size=40).tolist())
        covered += low <= 1.0 <= high
    assert 0.90 <= covered / 400 <= 0.98


def test_warm_ups_are_found_within_two_steps():
    """Levels that fall once, in two stages, or after one compilation; steps that follow others."""
    random = np.random.default_rng(12)
    found = 0
    rounds = 600
    for number in range(rounds):
        length = int(random.integers(1, 11))
        slower = random.uniform(1.3, 3.0)
        noise = np.zeros(60)
        for step in range(1, 60):
            noise[step] = 0.3 * noise[step - 1] + random.normal(0, 0.02)
        seconds = np.exp(noise)
        seconds[:length] *= slower
        if number % 3 == 1:
            seconds[: max(1, length // 2)] *= 1.5
        if number % 3 == 2:
            seconds[0] *= 20
        state = steady_state(seconds.tolist())
        found += state.kind is Steadiness.WARM_UP and abs(state.warmup_steps - length) <= 2
    assert found / rounds >= 0.97


def test_steady_launches_are_called_flat_though_some_steps_are_slow():
    random = np.random.default_rng(13)
    flat = 0
    for _ in range(300):
        seconds = np.exp(random.normal(0, 0.03, 60))
        seconds[random.integers(10, 60, 2)] *= 1.5
        flat += steady_state(seconds.tolist()).kind is Steadiness.FLAT
    assert flat / 300 >= 0.93


@pytest.mark.parametrize("rho", [0.0, 0.6])
def test_steps_that_follow_each_other_are_no_warm_up(rho):
    random = np.random.default_rng(14)
    flat = 0
    for _ in range(300):
        noise = np.zeros(60)
        for step in range(1, 60):
            noise[step] = rho * noise[step - 1] + random.normal(0, 0.03)
        flat += steady_state(np.exp(noise).tolist()).kind is Steadiness.FLAT
    assert flat / 300 >= 0.95


WARM_UPS = {
    "one slow step": lambda k: np.where(k < 1, 40.0, 1.0),
    "slower level": lambda k: np.where(k < 5, 3.0, 1.0),
    "two levels": lambda k: np.where(k < 3, 8.0, np.where(k < 10, 1.4, 1.0)),
    "compilation that decays": lambda k: 1.0 + 19.0 * np.exp(-k / 2),
    "caches": lambda k: 1.0 + 1.7 * np.exp(-k / 5),
    "allocator": lambda k: 1.0 + 0.3 * np.exp(-k / 12),
    "linear ramp": lambda k: 1.0 + 0.5 * np.clip(1.0 - k / 10, 0.0, None),
    "clock that falls": lambda k: 1.0 - 0.12 * np.exp(-k / 8),
}


@pytest.mark.parametrize("shape", WARM_UPS)
def test_means_after_a_warm_up_are_steady_or_withheld(shape):
    """20 to 200 steps: within 5 % of the steady mean, or reported as unstable."""
    random = np.random.default_rng(15)
    wrong, rounds = 0, 400
    for _ in range(rounds):
        steps = np.arange(int(random.integers(20, 201)))
        noise = random.normal(0.0, random.choice([0.01, 0.03]), steps.size)
        seconds = WARM_UPS[shape](steps) * np.exp(noise)
        state = steady_state(seconds.tolist())
        kept = seconds[state.warmup_steps :].mean()
        wrong += state.kind is not Steadiness.UNSTABLE and abs(kept - 1.0) > 0.05
    assert wrong / rounds <= 0.03


def test_a_step_time_that_keeps_growing_is_unstable():
    random = np.random.default_rng(16)
    found = 0
    for _ in range(300):
        steps = np.arange(int(random.integers(20, 201)))
        seconds = (1.0 + 0.02 * steps) * np.exp(random.normal(0.0, 0.03, steps.size))
        found += steady_state(seconds.tolist()).kind is Steadiness.UNSTABLE
    assert found / 300 >= 0.97
