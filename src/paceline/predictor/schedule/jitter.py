"""Jitter: the expected maximum of the times of N workers.

A synchronous step ends with the slowest of N workers, so it takes longer than the mean of their
times. All functions broadcast NumPy arrays.
"""

import math
from functools import cache, lru_cache

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
Numbers = float | FloatArray


def expected_maximum_lognormal(
    mean: Numbers, coefficient_of_variation: Numbers, workers: int | npt.NDArray[np.int_]
) -> FloatArray:
    """Expected largest of ``workers`` independent lognormal times with arithmetic ``mean``.

    ``coefficient_of_variation`` is standard deviation over mean. Times have a long right tail,
    so this grows faster with N than for a normal distribution, and stays positive.
    """
    variance = np.log1p(np.square(np.asarray(coefficient_of_variation, dtype=float)))
    grid, weights = _order_statistic(workers)
    shape = np.exp(np.sqrt(variance)[..., None] * grid - 0.5 * variance[..., None])
    return np.asarray(mean * (weights * shape).sum(axis=-1), dtype=float)


def slowest_factors(variation: float, workers: FloatArray) -> FloatArray:
    """Time of the slowest of ``workers`` over the mean, for whole numbers of workers."""
    distinct, index = np.unique(workers, return_inverse=True)
    factors = _slowest_of(variation, tuple(distinct.astype(int)))
    return np.asarray(factors[index].reshape(workers.shape))


@lru_cache(maxsize=64)
def _slowest_of(variation: float, workers: tuple[int, ...]) -> FloatArray:
    return expected_maximum_lognormal(1.0, variation, np.array(workers))


def _order_statistic(workers: int | npt.NDArray[np.int_]) -> tuple[FloatArray, FloatArray]:
    """Points and weights of the distribution of the largest of N standard normal draws.

    The density N phi(x) Phi(x)^(N-1) on an even grid; the trapezoid rule is exact to rounding
    for a smooth density that vanishes at both ends. Weights are normalised to sum to one.
    """
    grid, log_density, log_cumulative = _standard_normal()
    count = np.asarray(workers, dtype=float)[..., None]
    logarithm = log_density + (count - 1.0) * log_cumulative
    weights = np.exp(logarithm - logarithm.max(axis=-1, keepdims=True))
    return grid, weights / weights.sum(axis=-1, keepdims=True)


@cache
def _standard_normal() -> tuple[FloatArray, FloatArray, FloatArray]:
    grid = np.linspace(-12.0, 12.0, 1201)
    log_cumulative = np.array([_log_cumulative(x) for x in grid])
    return grid, -0.5 * grid**2, log_cumulative


def _log_cumulative(x: float) -> float:
    """Logarithm of Phi(x), exact in both tails."""
    if x > 0:
        return math.log1p(-0.5 * math.erfc(x / math.sqrt(2.0)))
    return math.log(0.5 * math.erfc(-x / math.sqrt(2.0)))
