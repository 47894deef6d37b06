"""The steps of one launch: quantiles, share of the tail, effective sample size."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

TAIL = 0.01
"""Fraction of steps, the slowest, whose share of the time is reported."""


@dataclass(frozen=True)
class StepSpread:
    """Quantiles of the steps of a launch in seconds, and the share of the slowest steps.

    ``tail_share`` is the fraction of the total time in the slowest 1 % of steps (at least one
    step); ``effective_steps`` is the effective sample size.
    """

    steps: int
    median: float
    p95: float
    p99: float
    tail_share: float
    effective_steps: float


def step_spread(seconds: Sequence[float]) -> StepSpread:
    """Quantiles, tail share and effective sample size of the steps of a launch."""
    ordered = sorted(seconds)
    tail = ordered[-max(1, round(TAIL * len(ordered))) :]
    return StepSpread(
        len(ordered),
        quantile(ordered, 0.5),
        quantile(ordered, 0.95),
        quantile(ordered, 0.99),
        math.fsum(tail) / math.fsum(ordered),
        effective_sample_size(seconds),
    )


def quantile(ordered: Sequence[float], part: float) -> float:
    """Quantile of sorted values by linear interpolation (NumPy's default, Hyndman-Fan type 7)."""
    position = part * (len(ordered) - 1)
    below = math.floor(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (position - below) * (ordered[above] - ordered[below])


def autocorrelation(values: Sequence[float], lag: int) -> float:
    """Correlation of each value with the one ``lag`` later; 0 with too few values."""
    count = len(values)
    if count < lag + 3:
        return 0.0
    mean = math.fsum(values) / count
    spread = math.fsum((value - mean) ** 2 for value in values)
    if spread <= 0:
        return 0.0
    later = itertools.islice(values, lag, None)
    together = math.fsum((a - mean) * (b - mean) for a, b in zip(values, later, strict=False))
    return together / spread


def effective_sample_size(values: Sequence[float]) -> float:
    """Number of independent values that would estimate the mean equally well.

    Between 1 and the number of values. Autocorrelations are summed in pairs while a pair is
    positive, which cuts off the noise of long lags: the initial positive sequence of Geyer,
    "Practical Markov Chain Monte Carlo" (1992), except that his pairs begin at lag 0.
    """
    count = len(values)
    total, lag = 0.0, 1
    while lag + 1 < count // 2:
        pair = autocorrelation(values, lag) + autocorrelation(values, lag + 1)
        if pair <= 0.0:
            break
        total += pair
        lag += 2
    return max(1.0, min(float(count), count / (1.0 + 2.0 * total)))
