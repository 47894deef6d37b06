"""A second interval that assumes no distribution, and whether it contradicts the first."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from paceline.statistics.estimate import CONFIDENCE, Estimate, estimate
from paceline.statistics.normality import ENOUGH, log_normality_words

RESAMPLES = 2000
BOOTSTRAP_SUFFICES = 20
"""With fewer launches the bootstrap covers the mean too seldom to replace Student's t."""

DIFFERS = 1 / 3
"""Intervals differ when a bound is off by more than this part of the half width."""

_NORMAL = statistics.NormalDist()


@dataclass(frozen=True)
class SecondInterval:
    """The bootstrap's interval of a mean beside Student's, and which of the two to believe.

    ``normality`` is of the logarithms: unchecked, plausible or doubtful. ``words`` say why the
    intervals differ and which one to take; they are empty where they agree.
    """

    low: float
    high: float
    normality: str
    words: str


def second_interval(values: Sequence[float]) -> SecondInterval | None:
    """The interval by bias-corrected accelerated bootstrap; None with fewer than 8 launches."""
    if len(values) < ENOUGH:
        return None
    first = estimate(values)
    low, high = bca_interval(values)
    normality = log_normality_words(values) if min(values) > 0 else "unchecked"
    off = max(abs(low - first.low), abs(high - first.high))
    words = "" if off <= DIFFERS * first.half_width else _which(first, normality)
    return SecondInterval(low, high, normality, words)


def _which(first: Estimate, normality: str) -> str:
    if normality == "doubtful" and first.launches >= BOOTSTRAP_SUFFICES:
        return "launches are not log-normal, and there are enough of them: take the bootstrap's"
    if normality == "doubtful":
        return (
            "launches are not log-normal, but too few for the bootstrap: take Student's t, and add "
            f"launches up to {BOOTSTRAP_SUFFICES}"
        )
    return "no test tells that launches are not log-normal: take Student's t"


def bca_interval(
    values: Sequence[float], confidence: float = CONFIDENCE, seed: int = 1
) -> tuple[float, float]:
    """Bounds of the mean by bias-corrected accelerated bootstrap of 2000 resamples, seeded."""
    data = np.asarray(values, dtype=float)
    if data.min() == data.max():
        return float(data[0]), float(data[0])
    random = np.random.default_rng(seed)
    means = np.sort(data[random.integers(0, data.size, (RESAMPLES, data.size))].mean(axis=1))
    below = (np.sum(means < data.mean()) + 0.5 * np.sum(means == data.mean())) / RESAMPLES
    bias = _NORMAL.inv_cdf(float(np.clip(below, 1 / RESAMPLES, 1 - 1 / RESAMPLES)))
    acceleration = _acceleration(data)
    tail = (1 - confidence) / 2
    bounds = []
    for chance in (tail, 1 - tail):
        score = bias + _NORMAL.inv_cdf(chance)
        moved = _NORMAL.cdf(bias + score / (1 - acceleration * score))
        bounds.append(float(np.quantile(means, moved)))
    return bounds[0], bounds[1]


def _acceleration(data: npt.NDArray[np.float64]) -> float:
    """How fast the mean's spread changes with the mean, by leaving out one value at a time."""
    left_out = (data.sum() - data) / (data.size - 1)
    apart = left_out.mean() - left_out
    return float(np.sum(apart**3) / (6.0 * np.sum(apart**2) ** 1.5))
