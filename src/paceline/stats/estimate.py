"""Mean over launches with its interval: Student's t on logarithms.

Seconds are averaged; a rate is samples over mean seconds (`Estimate.rate_of`), the harmonic mean of
rates (Hoefler and Belli 2015, rule 3). The noise of a launch is proportional to its time, hence the
logarithms; the interval of a positive quantity never includes zero.
"""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from paceline.errors import InputError
from paceline.stats.distributions import upper_quantile
from paceline.stats.modes import modes

CONFIDENCE = 0.95
SEQUENTIAL_WIDENING = 1.07
"""A stopping rule favours intervals that are narrow by chance; widened by this factor, they cover
95 % again (tests/stats/test_simulations.py)."""


@dataclass(frozen=True)
class Estimate:
    """A mean over ``launches`` launches with its 95 % interval.

    ``low``, ``high`` and the ``standard_deviation`` of launches are NaN for a single launch.
    """

    mean: float
    low: float
    high: float
    launches: int
    standard_deviation: float

    @property
    def half_width(self) -> float:
        """Half the width of the interval: the number after ±."""
        return (self.high - self.low) / 2

    @property
    def relative_half_width(self) -> float:
        """Half the width of the interval as a fraction of the mean; NaN for a single launch."""
        return self.half_width / self.mean

    def rate_of(self, amount: float) -> "Estimate":
        """Estimate of ``amount`` per second, if this is the estimate of its seconds."""
        rate = amount / self.mean
        deviation = rate * self.standard_deviation / self.mean
        return Estimate(rate, amount / self.high, amount / self.low, self.launches, deviation)


def estimate(values: Sequence[float], sequential: bool = False) -> Estimate:
    """Arithmetic mean of one value per launch, with the interval of Student's t.

    The interval is that of the mean logarithm, moved from the geometric to the arithmetic mean. If
    a value is not positive, it is the interval of the values themselves. If the launches have two
    modes, the interval also spans their means: the next campaign may have one of them. Set
    ``sequential`` if a stopping rule chose the number of launches.
    """
    if not values:
        raise InputError(
            "no launch of this kind finished", "see why with 'paceline study list --launches'"
        )
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
    found = modes(values)
    low, high = (found[0].mean, found[-1].mean) if found else (mean, mean)
    return Estimate(mean, min(low, mean / factor), max(high, mean * factor), count, deviation)


def student_t(degrees_of_freedom: float, confidence: float = CONFIDENCE) -> float:
    """Two-sided quantile of Student's t distribution."""
    return upper_quantile((1.0 - confidence) / 2.0, degrees_of_freedom)


def variation(values: Sequence[float]) -> float:
    """Coefficient of variation; 0 for fewer than two values."""
    return statistics.stdev(values) / statistics.fmean(values) if len(values) > 1 else 0.0


def pooled_variation(groups: Sequence[Sequence[float]]) -> float:
    """Coefficient of variation of several groups; NaN if no group has two values."""
    freedom = sum(max(0, len(group) - 1) for group in groups)
    if freedom == 0:
        return math.nan
    squares = math.fsum(variation(group) ** 2 * (len(group) - 1) for group in groups)
    return math.sqrt(squares / freedom)
