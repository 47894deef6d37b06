"""Expected maximum of N workers against tables and closed forms."""

import math
from statistics import NormalDist

import numpy as np
import pytest

from paceline.predictor.schedule.jitter import expected_maximum_lognormal, slowest_factors

NORMAL_MAXIMUM = {2: 0.56419, 3: 0.84628, 5: 1.16296, 10: 1.53875, 20: 1.86748, 100: 2.50759}
"""Expected largest of N standard normal draws (Harter 1961, table 1)."""


@pytest.mark.parametrize("workers", NORMAL_MAXIMUM)
def test_small_variation_is_normal(workers):
    variation = 1e-4
    found = float(expected_maximum_lognormal(2.0, variation, workers))
    assert (found / 2.0 - 1.0) / variation == pytest.approx(NORMAL_MAXIMUM[workers], rel=1e-3)


@pytest.mark.parametrize("variation", [0.05, 0.3, 1.0])
def test_the_larger_of_two_lognormals(variation):
    """E max = 2 E[X; X > Y] = 2 mean Phi(sigma / sqrt 2), with sigma^2 = log(1 + cv^2)."""
    sigma = math.sqrt(math.log(1 + variation**2))
    expected = 2 * 3.0 * NormalDist().cdf(sigma / math.sqrt(2))
    assert float(expected_maximum_lognormal(3.0, variation, 2)) == pytest.approx(expected)


def test_one_worker_and_no_variation():
    assert float(expected_maximum_lognormal(3.0, 0.4, 1)) == pytest.approx(3.0)
    assert float(expected_maximum_lognormal(3.0, 0.0, 64)) == pytest.approx(3.0)


def test_factors_of_many_workers():
    workers = np.array([[1.0, 16.0], [2.0, 16.0]])
    found = slowest_factors(0.1, workers)
    assert found.shape == (2, 2)
    assert found[0, 0] == pytest.approx(1.0)
    assert found[0, 1] == found[1, 1] == float(expected_maximum_lognormal(1.0, 0.1, 16))
    sigma = math.sqrt(math.log(1.01))
    assert found[1, 0] == pytest.approx(2 * NormalDist().cdf(sigma / math.sqrt(2)))
