import math

import numpy as np
import pytest

from paceline.errors import InputError
from paceline.stats.hierarchy import best_repetition, variance_components
from paceline.stats.laws import LAWS, fit_law
from paceline.stats.step_statistics import effective_sample_size, step_spread


def nested(random, launches, launch, rank, step, unequal=False):
    """Seconds by launch, rank and step with these standard deviations."""
    found = []
    for number in range(launches):
        mean = 10.0 + random.normal(0, launch)
        steps = 20 + (number % 3 if unequal else 0)
        ranks = [mean + random.normal(0, rank) for _ in range(3 if not unequal else 2 + number % 2)]
        found.append([(one + random.normal(0, step, steps)).tolist() for one in ranks])
    return found


@pytest.mark.parametrize("unequal", [False, True])
def test_components_are_found(unequal):
    random = np.random.default_rng(1)
    several = [variance_components(nested(random, 12, 0.5, 0.3, 1.0, unequal)) for _ in range(150)]
    assert np.mean([one.launch for one in several]) == pytest.approx(0.25, rel=0.15)
    assert np.mean([one.rank for one in several]) == pytest.approx(0.09, rel=0.15)
    assert np.mean([one.step for one in several]) == pytest.approx(1.0, rel=0.02)
    assert sum(several[0].shares) == pytest.approx(1.0)


def test_one_launch_has_no_components_and_one_rank_none_of_ranks():
    with pytest.raises(InputError, match="one launch"):
        variance_components([[[1.0, 2.0]]])
    alone = variance_components([[[1.0, 1.2]], [[3.0, 3.2]]])
    assert alone.rank == 0.0
    assert alone.launch == pytest.approx(2.0 - 0.01)
    assert variance_components([[[1.0]], [[1.0]]]).shares == (0.0, 0.0, 0.0)


def test_time_is_spent_where_variation_arises():
    random = np.random.default_rng(2)
    noisy_launches = variance_components(nested(random, 20, 1.0, 0.0, 0.2))
    noisy_steps = variance_components(nested(random, 20, 0.05, 0.0, 2.0))
    first = best_repetition(noisy_launches, 10.0, 0.5, 600.0)
    second = best_repetition(noisy_steps, 10.0, 0.5, 600.0)
    assert first.steps < 5 < second.steps
    assert first.launches > second.launches >= 3
    assert first.launches * (10.0 + 0.5 * first.steps) <= 600.0
    for steps in (first.steps // 2 or 1, first.steps * 4):
        launches = math.floor(600.0 / (10.0 + 0.5 * steps))
        variance = (noisy_launches.launch + noisy_launches.step / steps) / launches
        assert first.relative_error <= math.sqrt(variance) / noisy_launches.mean * 1.05


def test_correlated_steps_count_less():
    random = np.random.default_rng(3)
    independent = random.normal(size=2000)
    following = np.zeros(2000)
    for step in range(1, 2000):
        following[step] = 0.8 * following[step - 1] + random.normal()
    assert effective_sample_size(independent.tolist()) == pytest.approx(2000, rel=0.2)
    assert effective_sample_size(following.tolist()) == pytest.approx(2000 / 9, rel=0.35)
    assert effective_sample_size([1.0, 1.0, 1.0]) == 3.0


def test_quantiles_and_the_weight_of_the_tail():
    spread = step_spread([1.0] * 99 + [9.0])
    assert (spread.median, spread.p95) == (1.0, 1.0)
    assert spread.p99 == pytest.approx(1.08)
    assert spread.tail_share == pytest.approx(9 / 108)
    assert spread.steps == 100


@pytest.mark.parametrize(
    ("kind", "name", "truth"),
    [
        ("strong", "Amdahl", {"serial": 0.1, "parallel": 0.9}),
        ("strong", "USL", {"work": 1.0, "contention": 0.05, "coherency": 0.002}),
        ("weak", "Gustafson", {"step": 1.0, "serial": 0.02}),
        ("weak", "ring", {"step": 1.0, "bandwidth": 0.4, "latency": 0.01}),
        ("weak", "tree", {"step": 1.0, "rounds": 0.05}),
    ],
)
def test_a_law_is_found_again_with_its_terms_in_their_intervals(kind, name, truth):
    law = LAWS[kind][name]
    random = np.random.default_rng(4)
    seconds = {}
    for processes in (1, 2, 4, 8, 16, 32):
        p = np.asarray([float(processes)])
        mean = sum(truth[term] * form(p)[0] for term, form in law.terms.items())
        seconds[processes] = (mean * np.exp(random.normal(0, 0.005, 5))).tolist()
    fitted = fit_law(law, seconds)
    for term, value in truth.items():
        low, high = fitted.intervals[term]
        assert low - 0.02 * value <= value <= high + 0.02 * value
        assert fitted.seconds[term] == pytest.approx(value, rel=0.25)
    assert fitted.relative_error < 0.02
    assert fitted.base_seconds == pytest.approx(1.0, rel=0.02)
    assert fitted.predicted(32) == pytest.approx(np.mean(seconds[32]), rel=0.02)
    others = [fit_law(one, seconds) for one in LAWS[kind].values() if one is not law]
    assert all(fitted.criterion <= other.criterion + 5 for other in others)


def test_a_law_needs_its_base_and_enough_numbers_of_processes():
    law = LAWS["strong"]["Amdahl"]
    with pytest.raises(InputError, match="2 terms, but 1 number"):
        fit_law(law, {1: [1.0]})
    with pytest.raises(InputError, match="the base"):
        fit_law(law, {2: [1.0], 4: [0.5]})
    single = fit_law(law, {1: [1.0], 2: [0.6], 4: [0.4]})
    assert math.isnan(single.intervals["serial"][0])
    assert single.share("serial") == pytest.approx(0.2, abs=0.01)
