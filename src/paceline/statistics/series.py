"""The steps of one launch: quantiles, the weight of the tail, and how much they really tell."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

TAIL = 0.01
"""The slowest steps, one in a hundred, whose share of the time is told."""


@dataclass(frozen=True)
class StepSpread:
    """Seconds that half, 95 % and 99 % of steps stay below, and what the slowest steps cost.

    ``tail_share`` is the part of all time in the slowest one in a hundred steps (at least one
    step); ``effective_steps`` is how many independent steps would tell the mean as well.
    """

    steps: int
    median: float
    p95: float
    p99: float
    tail_share: float
    effective_steps: float


def step_spread(seconds: Sequence[float]) -> StepSpread:
    """What the steps of a launch are spread over."""
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
    """The value below which a ``part`` of sorted values lies, interpolated."""
    place = part * (len(ordered) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (place - below) * (ordered[above] - ordered[below])


def lag_one_autocorrelation(values: Sequence[float]) -> float:
    """Correlation of each value with the next; 0 where there are too few to tell."""
    return autocorrelation(values, 1)


def autocorrelation(values: Sequence[float], lag: int) -> float:
    """Correlation of each value with the one ``lag`` later; 0 where there are too few to tell."""
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
    """How many independent values would tell the mean as well as these do, 1 to their number.

    Autocorrelations are summed in pairs as long as a pair is positive (Geyer's initial positive
    sequence), so that noise of long lags does not count.
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
