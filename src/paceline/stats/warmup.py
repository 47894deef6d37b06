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

from paceline.stats.step_statistics import autocorrelation

# Standard deviation of a normal distribution over its median absolute deviation.
NORMAL_MAD = 1.4826
FINEST = 1e-3
"""Resolution of clocks, as a fraction of a step."""

_PENALTY = 5.6
# At a correlation of 1 the long-run variance below would be infinite.
_LARGEST_CORRELATION = 0.9


def change_penalty(long_run_noise: float, count: int) -> float:
    """Squared deviation that a change point, or a gradual approach, must explain.

    Of the form of the Schwarz criterion, variance x log n, with the long-run variance because
    consecutive steps are correlated.
    """
    return _PENALTY * long_run_noise**2 * math.log(count)


def steady_noise(values: npt.NDArray[np.float64]) -> tuple[float, float]:
    """`noise` of the steps, or of their later half if that is quieter.

    A gradual warm-up has correlated differences, which looks like noise of long memory.
    """
    return min(noise(values), noise(values[values.size // 2 :]), key=lambda one: one[1])


def noise(values: npt.NDArray[np.float64]) -> tuple[float, float]:
    """Standard deviation of steps about their level, and long-run standard deviation.

    The two differ if consecutive steps are correlated. Both are estimated from differences of
    neighbours, clipped, which changes of level hardly affect. In a first-order autoregression with
    correlation r, differences have the variance 2 s^2 (1 - r) and the correlation -(1 - r) / 2.
    The minimum is 0.001, the resolution of clocks.
    """
    if values.size < 3:
        return FINEST, FINEST
    differences = np.diff(values)
    apart = NORMAL_MAD * float(np.median(np.abs(differences)))
    cut = np.clip(differences, -3.0 * apart, 3.0 * apart)
    correlation = 1.0 + 2.0 * autocorrelation(cut.tolist(), 1)
    correlation = min(_LARGEST_CORRELATION, max(0.0, correlation))
    single = apart / math.sqrt(2.0 * (1.0 - correlation))
    long_run = single * math.sqrt((1.0 + correlation) / (1.0 - correlation))
    return max(FINEST, single), max(FINEST, long_run)


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


NEGLIGIBLE = 0.02
"""Distance to the limit, as a fraction, at which the launch is steady."""

FEWEST = 6
"""Minimum number of steps of an approach."""

_OUTLIER = 6.0
_SCALES = 24
_SHORTEST = 1.5
"""Shortest scale, in steps: a single slow step is not an approach."""

Values = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Approach:
    """Values that approach ``limit`` exponentially, from a distance of ``size``, in steps."""

    limit: float
    size: float
    scale: float

    def at(self, steps: npt.NDArray[np.int_]) -> Values:
        """Values at these steps after the beginning."""
        return self.limit + self.size * np.exp(-steps / self.scale)

    @property
    def steady_after(self) -> float:
        """Steps until the distance is negligible."""
        return max(0.0, self.scale * math.log(abs(self.size) / NEGLIGIBLE)) if self.size else 0.0


def gradual_approach(logs: Values, begins: Sequence[int]) -> tuple[int, float] | None:
    """First steady step and its level; None if levels from ``begins`` on describe ``logs``."""
    ends = [*begins[1:], logs.size]
    segments = zip(begins, ends, strict=True)
    levels = np.concatenate([np.full(e - b, np.median(logs[b:e])) for b, e in segments])
    best: tuple[float, int, Approach] | None = None
    for begin in begins:
        values = logs[begin:]
        if values.size < FEWEST:
            break
        fit = _fit(values)
        others, residuals = values - levels[begin:], values - fit.at(np.arange(values.size))
        # The noise of the better model: a wrong one takes its own error for noise
        single, long_run = min(steady_noise(others), steady_noise(residuals))
        penalty = change_penalty(long_run, logs.size)
        explained = _squares(others, single) - _squares(residuals, single)
        changes = int((np.abs(np.diff(levels[begin:])) > max(NEGLIGIBLE, single)).sum())
        gain = explained / penalty + changes - 1
        if gain > 0.0 and (best is None or gain > best[0]):
            best = gain, begin, fit
    if best is None:
        return None
    _, begin, fit = best
    return min(begin + math.ceil(fit.steady_after), logs.size - 1), fit.limit


def _fit(values: Values) -> Approach:
    """Approach by least squares, without outliers."""
    steps = np.arange(values.size)
    fit = _least_squares(steps, values)
    residuals = np.abs(values - fit.at(steps))
    cut = _OUTLIER * max(FINEST, NORMAL_MAD * float(np.median(residuals)))
    typical = residuals <= cut
    if typical.all() or typical.sum() < FEWEST:
        return fit
    return _least_squares(steps[typical], values[typical])


def _least_squares(steps: npt.NDArray[np.int_], values: Values) -> Approach:
    """Linear in limit and size, a grid in the scale."""
    scales = np.geomspace(_SHORTEST, 2.0 * steps.size, _SCALES)
    shapes = np.exp(-steps[None, :] / scales[:, None])
    centred = shapes - shapes.mean(axis=1, keepdims=True)
    squares = (centred**2).sum(axis=1)
    products = centred @ values
    best = int(np.argmax(products**2 / squares))
    size = float(products[best] / squares[best])
    return Approach(float(values.mean() - size * shapes[best].mean()), size, float(scales[best]))


def _squares(residuals: Values, spread: float) -> float:
    """Sum of squares in which a single slow step counts as an outlier of limited size."""
    return float((np.minimum(np.abs(residuals), _OUTLIER * spread) ** 2).sum())
