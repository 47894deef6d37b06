"""Comparisons of groups of launches: ratios, their intervals, and equivalence.

A few launches give a poor estimate of their variance. All groups ran on one machine, so their
pooled variance is used, or the variance of the group itself if that is larger. With this choice
equal groups are rarely reported as different even if one is much noisier, and three launches each
suffice to detect a factor of two, which Welch's test, without pooling, mostly misses. Logarithms
are compared because noise is proportional to time.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from paceline.stats.distributions import lower_tail
from paceline.stats.estimate import student_t

Groups = Sequence[Sequence[float]]
NORMAL_80 = 0.8416
"""The 80 % quantile of the normal distribution."""


@dataclass(frozen=True)
class LogDifference:
    """Difference of the mean logarithms of two groups, standard error, degrees of freedom.

    NaN if a group has fewer than two values.
    """

    difference: float
    error: float
    degrees: float

    @property
    def ratio(self) -> float:
        """First over second."""
        return math.exp(self.difference)

    @property
    def p_value(self) -> float:
        if math.isnan(self.error):
            return math.nan
        if self.error == 0.0:
            return 1.0 if self.difference == 0.0 else 0.0
        return 2.0 * lower_tail(-abs(self.difference) / self.error, self.degrees)

    @property
    def detectable(self) -> float:
        """Detectable change: the relative change that this test finds with a power of 80 %.

        The standard error is an estimate and, with few degrees of freedom, more often too small
        than too large. It is divided by the ratio of its median to the true value
        (Wilson-Hilferty).
        """
        if math.isnan(self.error):
            return math.nan
        median = (1 - 2 / (9 * self.degrees)) ** 1.5
        return math.expm1(_power_shift(self.degrees) * self.error / median)

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Interval of the difference; NaN without a standard error."""
        if math.isnan(self.error):
            return math.nan, math.nan
        half = student_t(self.degrees, confidence) * self.error
        return self.difference - half, self.difference + half

    def ratio_interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Interval of the ratio; NaN without a standard error."""
        low, high = self.interval(confidence)
        return math.exp(low), math.exp(high)

    def equivalence_p_value(self, margin: float) -> float:
        """p-value of equivalence: the null hypothesis is a ratio of ``1 + margin`` or more.

        Below 0.05, the two groups are the same within the ``margin``. A difference that is not
        significant does not show this.
        """
        return self.tost_p_value(math.log1p(margin))

    def tost_p_value(self, bound: float) -> float:
        """p-value of equivalence within a difference of ``bound``, such as 0.01 of accuracy.

        The larger p-value of two one-sided tests (TOST; Schuirmann 1987, "A comparison of the two
        one-sided tests procedure and the power approach").
        """
        if math.isnan(self.error):
            return math.nan
        if self.error == 0.0:
            return 0.0 if abs(self.difference) < bound else 1.0
        return lower_tail((abs(self.difference) - bound) / self.error, self.degrees)


def _power_shift(degrees: float) -> float:
    """True difference, in standard errors, that a t test finds with a power of 80 %.

    Approximation of the noncentral t distribution by Johnson and Welch (1940).
    """
    critical = student_t(degrees)
    return critical * (1 - 0.25 / degrees) + NORMAL_80 * math.sqrt(1 + critical**2 / (2 * degrees))


def log_differences(groups: Groups) -> list[LogDifference]:
    """Difference of every pair of groups of positive numbers, with the variance as above."""
    logs = [[math.log(value) for value in group] for group in groups]
    squares = [_sum_of_squares(group) for group in logs]
    degrees = sum(max(0, len(group) - 1) for group in groups)
    pooled = math.fsum(squares) / degrees if degrees else math.nan
    sides = [
        _mean_and_share(group, square, pooled) for group, square in zip(logs, squares, strict=True)
    ]
    return [
        LogDifference(mean_a - mean_b, math.sqrt(share_a + share_b), degrees)
        for (mean_a, share_a), (mean_b, share_b) in itertools.combinations(sides, 2)
    ]


def welch(first: Sequence[float], second: Sequence[float]) -> LogDifference:
    """Welch's test of two groups of positive numbers with unequal variances, on logarithms."""
    return mean_difference(
        [math.log(value) for value in first], [math.log(value) for value in second]
    )


def mean_difference(first: Sequence[float], second: Sequence[float]) -> LogDifference:
    """Welch's test of the values themselves, for quantities that may be negative."""
    if min(len(first), len(second)) < 2:
        return LogDifference(math.nan, math.nan, math.nan)
    means = [math.fsum(group) / len(group) for group in (first, second)]
    shares = [_sum_of_squares(g) / (len(g) - 1) / len(g) for g in (first, second)]
    spread = math.fsum(shares)
    if spread == 0.0:  # the Welch-Satterthwaite degrees of freedom would be 0 / 0
        return LogDifference(means[0] - means[1], 0.0, len(first) + len(second) - 2)
    parts = [s * s / (len(g) - 1) for s, g in zip(shares, (first, second), strict=True)]
    return LogDifference(means[0] - means[1], math.sqrt(spread), spread**2 / math.fsum(parts))


def paired_difference(
    first: Sequence[float], second: Sequence[float], resolution: float = 0.0
) -> LogDifference:
    """Mean difference of pairs that share a condition, such as a seed.

    Relative frequencies have a ``resolution``, the smallest possible difference of two values. The
    variance of a difference is at least that of rounding both values, resolution^2 / 12 each, so
    that two pairs that agree by chance do not give a variance of zero.
    """
    differences = [a - b for a, b in zip(first, second, strict=True)]
    count = len(differences)
    if count < 2:
        mean = differences[0] if differences else math.nan
        return LogDifference(mean, math.nan, math.nan)
    variance = max(_sum_of_squares(differences) / (count - 1), resolution**2 / 6.0)
    return LogDifference(
        math.fsum(differences) / count, math.sqrt(variance / count), float(count - 1)
    )


def smallest_detectable(first: int, second: int, deviation: float) -> float:
    """Smallest relative change that these numbers of launches detect with a power of 80 %.

    ``deviation`` is that of the logarithms of launches. Degrees of freedom as in the pooled test.
    """
    degrees = first + second - 2
    if degrees < 1:
        return math.nan
    error = deviation * math.sqrt(1.0 / first + 1.0 / second)
    return math.expm1((student_t(degrees) + student_t(degrees, 0.6)) * error)


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down correction of p-values; NaN stays NaN and is not counted."""
    known = sorted((p, index) for index, p in enumerate(p_values) if not math.isnan(p))
    corrected = list(p_values)
    reached = 0.0
    for number, (p, index) in enumerate(known):
        reached = max(reached, min(1.0, p * (len(known) - number)))
        corrected[index] = reached
    return corrected


def _mean_and_share(values: Sequence[float], squares: float, pooled: float) -> tuple[float, float]:
    """Mean, and its squared standard error by the larger of own and pooled variance."""
    count = len(values)
    if count < 2:
        return math.nan, math.nan
    return math.fsum(values) / count, max(squares / (count - 1), pooled) / count


def _sum_of_squares(values: Sequence[float]) -> float:
    mean = math.fsum(values) / len(values)
    return math.fsum((value - mean) ** 2 for value in values)


EXACT_UP_TO = 25
"""The p-value is exact up to this number of values in both groups together."""


def mann_whitney(first: Sequence[float], second: Sequence[float]) -> float:
    """Two-sided p-value of the Mann-Whitney U test.

    Exact up to 25 values without ties, otherwise the normal approximation with tie and continuity
    corrections. With three values each, p is at least 0.1.
    """
    from scipy.stats import mannwhitneyu

    together = {*first, *second}
    if len(together) == 1:
        return 1.0
    values = len(first) + len(second)
    exact = values <= EXACT_UP_TO and len(together) == values
    found = mannwhitneyu(first, second, method="exact" if exact else "asymptotic")
    return min(1.0, float(found.pvalue))
