"""Comparisons of groups of launches: ratios, their intervals, and equivalence.

Arithmetic means of seconds are compared, the means that tables show; their ratio has the
logarithm of `LogDifference`, with a standard error by the delta method. Means of logarithms would
differ between groups of equal mean and unequal spread.

A few launches give a poor estimate of their variance. All groups ran on one machine, so their
pooled coefficient of variation is used, or that of the group itself if it is larger, with its own
degrees of freedom if it is significantly larger (F test). With this choice equal groups are rarely
reported as different even if one is much noisier, and three launches each suffice to detect a
factor of two, which Welch's test, without pooling, mostly misses.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from paceline.stats.distributions import SIGNIFICANCE, f_upper_tail, lower_tail
from paceline.stats.estimate import student_t

Groups = Sequence[Sequence[float]]


@dataclass(frozen=True)
class LogDifference:
    """Logarithm of the ratio of two means, its standard error, degrees of freedom.

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
    def inverse(self) -> "LogDifference":
        """Second over first: the ratio of rates, if this is the ratio of seconds."""
        return LogDifference(-self.difference, self.error, self.degrees)

    @property
    def p_value(self) -> float:
        if math.isnan(self.error):
            return math.nan
        if self.error == 0.0:
            return 1.0 if self.difference == 0.0 else 0.0
        return 2.0 * lower_tail(-abs(self.difference) / self.error, self.degrees)

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


def log_differences(groups: Groups) -> list[LogDifference]:
    """Ratio of means of every pair of groups of positive numbers, with the variance as above."""
    squares = [_sum_of_squares(_over_mean(group)) for group in groups]
    freedom = [max(0, len(group) - 1) for group in groups]
    degrees, total = sum(freedom), math.fsum(squares)
    sides = []
    for group, own, free in zip(groups, squares, freedom, strict=True):
        if free == 0:
            sides.append(_Side(math.nan, math.nan, degrees, pooled=True))
            continue
        wider = _is_wider(own, free, total - own, degrees - free, SIGNIFICANCE / len(groups))
        share = max(own / free, total / degrees) / len(group)
        log_mean = math.log(math.fsum(group) / len(group))
        sides.append(_Side(log_mean, share, free if wider else degrees, pooled=not wider))
    return [_difference(a, b) for a, b in itertools.combinations(sides, 2)]


@dataclass(frozen=True)
class _Side:
    """Logarithm of a mean, its squared standard error and its degrees of freedom."""

    log_mean: float
    share: float
    degrees: int
    pooled: bool


def _is_wider(own: float, free: int, others: float, other_free: int, level: float) -> bool:
    """Whether a sum of squares is significantly larger than that of the other groups (F test)."""
    if other_free == 0 or others == 0.0:
        return False
    return f_upper_tail(own / free * other_free / others, free, other_free) < level


def _difference(a: _Side, b: _Side) -> LogDifference:
    """Difference of two sides; degrees of freedom by Welch and Satterthwaite unless pooled."""
    error = math.sqrt(a.share + b.share)
    if (a.pooled and b.pooled) or error == 0.0:
        return LogDifference(a.log_mean - b.log_mean, error, a.degrees)
    parts = math.fsum(one.share**2 / one.degrees for one in (a, b))
    return LogDifference(a.log_mean - b.log_mean, error, error**4 / parts)


def welch(first: Sequence[float], second: Sequence[float]) -> LogDifference:
    """Welch's test of the ratio of means of two groups of positive numbers, unequal variances."""
    logs = [
        [math.log(math.fsum(group) / len(group)) + value - 1.0 for value in _over_mean(group)]
        for group in (first, second)
    ]
    return mean_difference(*logs)


def _over_mean(values: Sequence[float]) -> list[float]:
    mean = math.fsum(values) / len(values)
    return [value / mean for value in values]


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


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down correction of p-values; NaN stays NaN and is not counted."""
    known = sorted((p, index) for index, p in enumerate(p_values) if not math.isnan(p))
    corrected = list(p_values)
    reached = 0.0
    for number, (p, index) in enumerate(known):
        reached = max(reached, min(1.0, p * (len(known) - number)))
        corrected[index] = reached
    return corrected


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
