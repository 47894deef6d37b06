"""Shapiro-Francia test of normality, for eight values or more."""

import math
import statistics
from collections.abc import Sequence

from paceline.stats.distributions import SIGNIFICANCE

ENOUGH = 8
"""With fewer values the test has hardly any power: not rejecting normality would mean nothing."""

_NORMAL = statistics.NormalDist()


def normality_p_value(values: Sequence[float]) -> float:
    """p-value of the Shapiro-Francia test.

    NaN with fewer than eight values or if all are equal. The statistic is the squared correlation
    with Blom's normal scores; its distribution is the approximation of Royston (1993), "A
    pocket-calculator algorithm for the Shapiro-Francia test", for 5 to 5000 values.
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


def check_log_normality(values: Sequence[float]) -> str:
    """Normality of the logarithms: unchecked, plausible or doubtful."""
    p_value = normality_p_value([math.log(value) for value in values])
    if math.isnan(p_value):
        return "unchecked"
    return "doubtful" if p_value < SIGNIFICANCE else "plausible"
