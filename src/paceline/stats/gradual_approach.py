"""Gradual approach of step times to their steady level.

Caches, allocators, compilers and clocks do not change the step time at once. A launch is modelled
as levels, then an exponential approach from one of their change points on, if that describes its
steps better than levels alone.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from paceline.stats.step_noise import FINEST, NORMAL_MAD, change_penalty, steady_noise

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
