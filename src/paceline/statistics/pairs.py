"""Groups of launches against each other: how many times, how surely, and whether the same.

Few launches tell little of how much launches vary. Those of all groups together tell more, and
they ran on one machine: each is taken to vary as much as all do, or as itself does where that is
more. Equals are then seldom called different even where one is much noisier than the rest, and
three launches each suffice to tell what is twice as fast, which Welch's test, that knows nothing
of the others, mostly cannot. Logarithms are compared: noise is a share of what it disturbs.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from paceline.statistics.distributions import lower_tail
from paceline.statistics.estimate import student_t

Groups = Sequence[Sequence[float]]


@dataclass(frozen=True)
class LogDifference:
    """Difference of the mean logarithms of two groups, its standard error and their degrees.

    NaN where a group has fewer than two values.
    """

    difference: float
    error: float
    degrees: float

    @property
    def ratio(self) -> float:
        """How many times the second the first is."""
        return math.exp(self.difference)

    @property
    def p_value(self) -> float:
        """Two-sided chance of such a difference between equals."""
        if math.isnan(self.error):
            return math.nan
        if self.error == 0.0:
            return 1.0 if self.difference == 0.0 else 0.0
        return 2.0 * lower_tail(-abs(self.difference) / self.error, self.degrees)

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Bounds of the difference itself; NaN where there is no error to tell them by."""
        if math.isnan(self.error):
            return math.nan, math.nan
        half = student_t(self.degrees, confidence) * self.error
        return self.difference - half, self.difference + half

    def ratio_interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Bounds of the ratio; NaN where there is no error to tell them by."""
        low, high = self.interval(confidence)
        return math.exp(low), math.exp(high)

    def equivalence_chance(self, margin: float) -> float:
        """Chance of data like these if the ratio were ``1 + margin`` or further from one.

        Below 0.05, the two are the same to within the ``margin``. That a difference was not found
        is no such statement.
        """
        return self.within_chance(math.log1p(margin))

    def within_chance(self, bound: float) -> float:
        """The same for a difference of ``bound`` or more, such as 0.01 of accuracy.

        It is the larger chance of two one-sided tests (TOST).
        """
        if math.isnan(self.error):
            return math.nan
        if self.error == 0.0:
            return 0.0 if abs(self.difference) < bound else 1.0
        return lower_tail((abs(self.difference) - bound) / self.error, self.degrees)


def log_differences(groups: Groups) -> list[LogDifference]:
    """Every pair of groups of positive numbers, variances pooled with care (see above)."""
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
    """Two groups that have nothing in common, not even how much they vary (Welch's test)."""
    return mean_difference(
        [math.log(value) for value in first], [math.log(value) for value in second]
    )


def mean_difference(first: Sequence[float], second: Sequence[float]) -> LogDifference:
    """Welch's difference of the values as they are, for what is no positive quantity."""
    if min(len(first), len(second)) < 2:
        return LogDifference(math.nan, math.nan, math.nan)
    means = [math.fsum(group) / len(group) for group in (first, second)]
    shares = [_sum_of_squares(g) / (len(g) - 1) / len(g) for g in (first, second)]
    spread = math.fsum(shares)
    if spread == 0.0:
        return LogDifference(means[0] - means[1], 0.0, len(first) + len(second) - 2)
    parts = [s * s / (len(g) - 1) for s, g in zip(shares, (first, second), strict=True)]
    return LogDifference(means[0] - means[1], math.sqrt(spread), spread**2 / math.fsum(parts))


def paired_difference(
    first: Sequence[float], second: Sequence[float], resolution: float = 0.0
) -> LogDifference:
    """Mean of the differences of pairs that have something in common, such as a seed.

    Values that are counts over a number have a ``resolution``, the least that two can differ by:
    what is rounded by it varies by at least its share, so that two pairs that happen to agree do
    not prove everything.
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


def smallest_visible(first: int, second: int, deviation: float) -> float:
    """The smallest true change, as a part, that these numbers of launches show 8 times in 10.

    ``deviation`` is that of the logarithms of launches. Degrees of freedom as in the pooled test.
    """
    degrees = first + second - 2
    if degrees < 1:
        return math.nan
    error = deviation * math.sqrt(1.0 / first + 1.0 / second)
    return math.expm1((student_t(degrees) + student_t(degrees, 0.6)) * error)


def holm(p_values: Sequence[float]) -> list[float]:
    """p-values corrected for being several (Holm's step-down); NaN stays, and counts for none."""
    known = sorted((p, index) for index, p in enumerate(p_values) if not math.isnan(p))
    corrected = list(p_values)
    reached = 0.0
    for number, (p, index) in enumerate(known):
        reached = max(reached, min(1.0, p * (len(known) - number)))
        corrected[index] = reached
    return corrected


def _mean_and_share(values: Sequence[float], squares: float, pooled: float) -> tuple[float, float]:
    """Mean, and the square of its standard error, by the larger of own and pooled variance."""
    count = len(values)
    if count < 2:
        return math.nan, math.nan
    return math.fsum(values) / count, max(squares / (count - 1), pooled) / count


def _sum_of_squares(values: Sequence[float]) -> float:
    mean = math.fsum(values) / len(values)
    return math.fsum((value - mean) ** 2 for value in values)
