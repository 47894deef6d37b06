"""Where the steps of a launch become steady: change points in their logarithms, found exactly.

The steps are cut into segments of equal level so that squared distances from the levels, plus a
penalty for each cut, are least. What is before the steady level is warm-up; a launch that has
no steady level is unstable, and its mean means nothing.
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import numpy.typing as npt

from paceline.statistics.series import autocorrelation

FEWEST_STEPS = 8
"""With fewer steps nothing can be told."""

SAME_LEVEL = 0.02
"""Levels that differ by less are one, whatever the noise: a fiftieth of a step is no warm-up."""

SHORT = 3
"""Segments of up to this many steps after the beginning are slow steps, not another level."""

STEADY_PART = 1 / 3
"""The steady level must hold for this part of the steps, the last ones."""

MOST_STEPS = 2000
"""Of more steps, means of several neighbours are looked at: the work grows with their square."""

_PENALTY = 4.0
_NORMAL_MAD = 1.4826
_FINEST = 1e-3
_MOST_ALIKE = 0.9


class Steadiness(StrEnum):
    """How the steps of a launch run from first to last."""

    FLAT = "flat"
    WARM_UP = "warm-up"
    SLOW_DOWN = "slow-down"
    UNSTABLE = "unstable"
    UNCHECKED = "unchecked"


@dataclass(frozen=True)
class SteadyState:
    """Number of steps before the launch is steady, and how they differ from the steady ones.

    ``first_over_steady`` is the first step over the median steady one: what compiling costs.
    """

    warmup_steps: int
    kind: Steadiness
    first_over_steady: float


def steady_state(seconds: Sequence[float]) -> SteadyState:
    """Where a launch becomes steady, from the seconds of all its steps, the first included."""
    if len(seconds) < FEWEST_STEPS or min(seconds) <= 0.0:
        return SteadyState(0, Steadiness.UNCHECKED, math.nan)
    width = math.ceil(len(seconds) / MOST_STEPS)
    if width > 1:
        state = steady_state(_thinned(seconds, width))
        return SteadyState(state.warmup_steps * width, state.kind, state.first_over_steady)
    logs = np.log(np.asarray(seconds, dtype=float))
    segments = _long_segments(change_points(logs), logs)
    start, level = segments[-1]
    tolerance = max(SAME_LEVEL, _noise(logs[start:])[0])
    for begin, own in reversed(segments[:-1]):
        if abs(own - level) > tolerance:
            break
        start = begin
    first = float(seconds[0] / statistics.median(seconds[start:]))
    if len(seconds) - start < STEADY_PART * len(seconds):
        return SteadyState(start, Steadiness.UNSTABLE, first)
    if start == 0:
        return SteadyState(0, Steadiness.FLAT, first)
    slower = statistics.fmean(logs[:start].tolist()) > level
    return SteadyState(start, Steadiness.WARM_UP if slower else Steadiness.SLOW_DOWN, first)


def change_points(values: npt.NDArray[np.float64]) -> list[int]:
    """Beginnings of segments of equal level, 0 the first, by optimal partitioning."""
    count = values.size
    sums = np.concatenate([[0.0], np.cumsum(values)])
    squares = np.concatenate([[0.0], np.cumsum(values**2)])
    penalty = _PENALTY * _noise(values)[1] ** 2 * math.log(count)
    best = np.zeros(count + 1)
    best[0] = -penalty
    came_from = np.zeros(count + 1, dtype=int)
    for end in range(1, count + 1):
        begins = np.arange(end)
        within = squares[end] - squares[:end] - (sums[end] - sums[:end]) ** 2 / (end - begins)
        costs = best[:end] + np.maximum(within, 0.0) + penalty
        came_from[end] = int(np.argmin(costs))
        best[end] = costs[came_from[end]]
    found: list[int] = []
    end = count
    while end > 0:
        end = int(came_from[end])
        found.append(end)
    return found[::-1]


def _thinned(seconds: Sequence[float], width: int) -> list[float]:
    """Means of ``width`` neighbours each; the last ones may be fewer."""
    parts = (seconds[begin : begin + width] for begin in range(0, len(seconds), width))
    return [math.fsum(part) / len(part) for part in parts]


def _noise(values: npt.NDArray[np.float64]) -> tuple[float, float]:
    """Standard deviation of steps about their level, and of their mean times root of their number.

    The two differ where a step is like the one before. Both come from differences of neighbours,
    large ones cut, which changes of level disturb little; for a first-order autoregression with
    correlation r, differences have the variance 2 s^2 (1 - r) and correlate by -(1 - r) / 2. A
    thousandth is assumed at the least, as clocks are not finer.
    """
    if values.size < 3:
        return _FINEST, _FINEST
    differences = np.diff(values)
    apart = _NORMAL_MAD * float(np.median(np.abs(differences)))
    cut = np.clip(differences, -3.0 * apart, 3.0 * apart)
    alike = 1.0 + 2.0 * autocorrelation(cut.tolist(), 1)
    alike = min(_MOST_ALIKE, max(0.0, alike))
    single = apart / math.sqrt(2.0 * (1.0 - alike))
    together = single * math.sqrt((1.0 + alike) / (1.0 - alike))
    return max(_FINEST, single), max(_FINEST, together)


def _long_segments(
    begins: Sequence[int], values: npt.NDArray[np.float64]
) -> list[tuple[int, float]]:
    """Begin and median level of each segment; short ones in the midst join the one before."""
    ends = [*begins[1:], values.size]
    kept = [
        begin
        for begin, end in zip(begins, ends, strict=True)
        if begin == 0 or end - begin > SHORT or begin <= SHORT
    ]
    return [
        (begin, float(np.median(values[begin:end])))
        for begin, end in zip(kept, [*kept[1:], values.size], strict=True)
    ]
