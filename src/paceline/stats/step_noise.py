"""Noise of the steps of one launch, and the penalty of one more level in a model of them."""

import math

import numpy as np
import numpy.typing as npt

from paceline.stats.step_statistics import autocorrelation

NORMAL_MAD = 1.4826
FINEST = 1e-3
"""Resolution of clocks, as a fraction of a step."""

_PENALTY = 5.6
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
