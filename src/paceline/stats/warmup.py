"""End of warm-up: change points in the logarithms of step times, then gradual decay.

The segmentation minimises squared deviations from segment means plus a penalty per change point
(Jackson et al. 2005, "An algorithm for optimal partitioning of data on an interval"). Steps before
the last level are warm-up. Caches, allocators, compilers and clocks approach their level
gradually, so an exponential approach is fitted to the last level as well: the steps before its
distance to the limit is negligible are warm-up too. A launch without a steady level is unstable,
and its mean has no meaning.
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import numpy.typing as npt

from paceline.stats.gradual_approach import gradual_approach
from paceline.stats.step_noise import change_penalty, noise, steady_noise

FEWEST_STEPS = 8
"""Launches with fewer steps are not checked."""

SAME_LEVEL = 0.02
"""Levels that differ by less count as one: a difference of 2 % is not a warm-up."""

SHORT = 3
"""Later segments of up to this number of steps are slow steps, not a new level."""

STEADY_PART = 1 / 3
"""Fraction of the steps, the last ones, that the steady level must hold for."""

MOST_STEPS = 2000
"""More steps are averaged in groups of neighbours: run time is quadratic in their number."""


class Steadiness(StrEnum):
    """Course of the step times of a launch."""

    FLAT = "flat"
    WARM_UP = "warm-up"
    SLOW_DOWN = "slow-down"
    UNSTABLE = "unstable"
    UNCHECKED = "unchecked"


@dataclass(frozen=True)
class SteadyState:
    """Number of steps before the steady level, and their kind.

    ``first_over_steady`` is the first step over the median steady step; it shows compilation.
    """

    warmup_steps: int
    kind: Steadiness
    first_over_steady: float


def steady_state(seconds: Sequence[float]) -> SteadyState:
    """Find the steady level from the seconds of all steps of a launch, including the first."""
    if len(seconds) < FEWEST_STEPS or min(seconds) <= 0.0:
        return SteadyState(0, Steadiness.UNCHECKED, math.nan)
    width = math.ceil(len(seconds) / MOST_STEPS)
    if width > 1:
        state = steady_state(_group_means(seconds, width))
        return SteadyState(state.warmup_steps * width, state.kind, state.first_over_steady)
    logs = np.log(np.asarray(seconds, dtype=float))
    segments = _long_segments(change_points(logs), logs)
    start, level = segments[-1]
    tolerance = max(SAME_LEVEL, noise(logs[start:])[0])
    for begin, own in reversed(segments[:-1]):
        if abs(own - level) > tolerance:
            break
        start = begin
    gradual = gradual_approach(logs, [begin for begin, _ in segments])
    if gradual is not None:
        start, level = gradual
    first = float(seconds[0] / statistics.median(seconds[start:]))
    if len(seconds) - start < STEADY_PART * len(seconds):
        return SteadyState(start, Steadiness.UNSTABLE, first)
    if start == 0:
        return SteadyState(0, Steadiness.FLAT, first)
    slower = statistics.fmean(logs[:start].tolist()) > level
    return SteadyState(start, Steadiness.WARM_UP if slower else Steadiness.SLOW_DOWN, first)


def change_points(values: npt.NDArray[np.float64]) -> list[int]:
    """First indices of segments of equal level, beginning with 0, by optimal partitioning."""
    count = values.size
    sums = np.concatenate([[0.0], np.cumsum(values)])
    squares = np.concatenate([[0.0], np.cumsum(values**2)])
    penalty = change_penalty(steady_noise(values)[1], count)
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


def _group_means(seconds: Sequence[float], width: int) -> list[float]:
    """Means of groups of ``width`` neighbours; the last group may be smaller."""
    parts = (seconds[begin : begin + width] for begin in range(0, len(seconds), width))
    return [math.fsum(part) / len(part) for part in parts]


def _long_segments(
    begins: Sequence[int], values: npt.NDArray[np.float64]
) -> list[tuple[int, float]]:
    """First index and median level of each segment; short inner ones join the one before."""
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
