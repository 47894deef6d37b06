import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.predictor.schedule.jitter import expected_maximum_lognormal


def test_two_workers_have_the_textbook_maximum():
    # E max(X, Y) of two lognormals: 2 Phi(sigma / sqrt 2) times their mean.
    sigma = np.sqrt(np.log1p(0.5**2))
    expected = 1 + math.erf(sigma / 2)
    assert expected_maximum_lognormal(1.0, 0.5, 2) == pytest.approx(expected, rel=1e-9)


def test_one_worker_waits_for_nobody():
    assert expected_maximum_lognormal(0.3, 0.5, 1) == pytest.approx(0.3, rel=1e-12)


@pytest.mark.parametrize("workers", [2, 16, 500])
def test_lognormal_agrees_with_drawing(workers):
    draws = np.random.default_rng(7)
    sigma = np.sqrt(np.log1p(0.2**2))
    largest = np.exp(draws.normal(-(sigma**2) / 2, sigma, (20000, workers))).max(axis=1)
    error = 4 * largest.std() / np.sqrt(len(largest))
    assert expected_maximum_lognormal(1.0, 0.2, workers) == pytest.approx(largest.mean(), abs=error)


@given(st.floats(0.0, 1.0), st.integers(1, 10**6))
def test_waiting_grows_with_workers_and_with_spread(spread, workers):
    now = expected_maximum_lognormal(1.0, spread, workers)
    assert now >= 1.0 - 1e-12
    assert expected_maximum_lognormal(1.0, spread, 2 * workers) >= now - 1e-12
    assert expected_maximum_lognormal(1.0, spread + 0.1, workers) >= now - 1e-12


def test_arrays_broadcast():
    spread = np.array([[0.0], [0.1]])
    seconds = expected_maximum_lognormal(2.0, spread, np.array([1, 8, 64]))
    assert seconds.shape == (2, 3)
    assert seconds[1, 2] == pytest.approx(expected_maximum_lognormal(2.0, 0.1, 64))
