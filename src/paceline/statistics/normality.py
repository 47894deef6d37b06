"""Whether numbers may be normal: the test of Shapiro and Francia, from eight of them on."""

import math
import statistics
from collections.abc import Sequence

from paceline.statistics.distributions import SIGNIFICANCE

ENOUGH = 8
"""Fewer values cannot tell: the test would find nothing, which is no finding."""

_NORMAL = statistics.NormalDist()


def normality_chance(values: Sequence[float]) -> float:
    """Chance that normal values would be as far from a straight quantile plot, or farther.

    NaN with fewer than eight values, or where all are equal. The statistic is the squared
    correlation with the expected normal order; its distribution is Royston's approximation of
    1993, for 5 to 5000 values.
    """
    count = len(values)
    if count < ENOUGH or min(values) == max(values):
        return math.nan
    scores = [_NORMAL.inv_cdf((rank - 0.375) / (count + 0.25)) for rank in range(1, count + 1)]
    straightness = statistics.correlation(sorted(values), scores) ** 2
    if straightness >= 1.0:
        return 1.0
    log_count = math.log(count)
    twice = math.log(log_count)
    expected = 1.0521 * (twice - log_count) - 1.2725
    spread = 1.0308 - 0.26758 * (twice + 2.0 / log_count)
    return 1.0 - _NORMAL.cdf((math.log(1.0 - straightness) - expected) / spread)


def log_normality_words(values: Sequence[float]) -> str:
    """What is known of the normality of the logarithms: unchecked, plausible or doubtful."""
    chance = normality_chance([math.log(value) for value in values])
    if math.isnan(chance):
        return "unchecked"
    return "doubtful" if chance < SIGNIFICANCE else "plausible"
