"""The mean over launches and the interval it lies in: Student's t on logarithms.

Seconds are averaged; a rate is a number of samples over mean seconds (`Estimate.rate_of`), so that
an hour at half the speed counts for an hour. Noise of a launch is a share of its time, hence the
logarithms: the interval of a positive quantity never reaches zero.
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from paceline.errors import InputError
from paceline.statistics.distributions import upper_quantile

CONFIDENCE = 0.95
SEQUENTIAL_WIDENING = 1.07
"""Where launches were added until the interval was narrow enough, it is narrow by luck at times:
wider by this, it covers 95 % again (tests/statistics/test_simulations.py)."""


@dataclass(frozen=True)
class Estimate:
    """A mean over launches with its interval; ``launches`` is how many it rests on.

    ``low`` and ``high`` bound the mean with 95 % confidence; with a single launch they are not
    known and are NaN, as is the ``standard_deviation`` of launches.
    """

    mean: float
    low: float
    high: float
    launches: int
    standard_deviation: float

    @property
    def half_width(self) -> float:
        """Half the interval's width: the number behind ±."""
        return (self.high - self.low) / 2

    @property
    def relative_half_width(self) -> float:
        """Half the interval's width as a share of the mean; NaN for a single launch."""
        return self.half_width / self.mean

    def rate_of(self, amount: float) -> "Estimate":
        """``amount`` per second, where this estimates the seconds that it takes."""
        rate = amount / self.mean
        deviation = rate * self.standard_deviation / self.mean
        return Estimate(rate, amount / self.high, amount / self.low, self.launches, deviation)


def estimate(values: Sequence[float], sequential: bool = False) -> Estimate:
    """Arithmetic mean of one value per launch, with the interval of Student's t.

    The interval is that of the mean logarithm, moved from the geometric to the arithmetic mean;
    where a value is not positive it is that of the values themselves. ``sequential`` says that
    their number was decided by looking at them.
    """
    if not values:
        raise InputError("there is nothing to average", "no launch of this kind finished")
    count, mean = len(values), math.fsum(values) / len(values)
    if count == 1:
        return Estimate(mean, math.nan, math.nan, 1, math.nan)
    deviation = statistics.stdev(values)
    width = student_t(count - 1) / math.sqrt(count)
    if sequential:
        width *= SEQUENTIAL_WIDENING
    if min(values) <= 0.0:
        half = width * deviation
        return Estimate(mean, mean - half, mean + half, count, deviation)
    factor = math.exp(width * statistics.stdev(map(math.log, values)))
    return Estimate(mean, mean / factor, mean * factor, count, deviation)


def student_t(degrees_of_freedom: float, confidence: float = CONFIDENCE) -> float:
    """Two-sided quantile of Student's t distribution."""
    return upper_quantile((1.0 - confidence) / 2.0, degrees_of_freedom)


def variation(values: Sequence[float]) -> float:
    """Coefficient of variation; 0 where there are too few values to tell."""
    return statistics.stdev(values) / statistics.fmean(values) if len(values) > 1 else 0.0
