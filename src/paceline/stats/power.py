"""Power of comparisons: detectable changes, and false positives between campaigns.

A campaign is one day, boot or allocation. Launches of one campaign share its effect, so more
launches do not reduce the difference between two campaigns.
"""

import math

from paceline.stats.distributions import SIGNIFICANCE, lower_tail
from paceline.stats.estimate import student_t

# The convention since Cohen 1988, "Statistical power analysis for the behavioral sciences".
POWER = 0.8
ROUNDS = 4000
"""Simulated comparisons; the standard error of a power of 80 % is then 0.6 %."""

TOLERANCE = 1e-6
"""Accuracy of a detectable change; smaller ones are zero."""

SMALLEST = 1e-9
"""Least coefficient of variation, for groups of equal launches."""


def campaign_false_positives(first: int, second: int, ratio: float = 1.0) -> float:
    """Fraction of equal configurations that a t test of one campaign each reports as different.

    ``ratio`` is the standard deviation of campaigns over that of launches. The difference of
    means is wider by a factor than the test assumes.
    """
    degrees = first + second - 2
    if degrees < 1:
        return math.nan
    wider = math.sqrt(1.0 + 2.0 * ratio**2 / (1.0 / first + 1.0 / second))
    return 2.0 * lower_tail(-student_t(degrees) / wider, degrees)


def detectable_change(
    launches: tuple[int, int],
    deviation: float,
    campaigns: int = 0,
    variance: float = 0.0,
    noise: float = 0.0,
) -> float:
    """Relative change between two groups of launches that is detected with 80 % power, simulated.

    ``deviation`` is the pooled coefficient of variation of the ``launches``. The groups are of one
    campaign, or of two with the history of ``campaigns`` earlier ones: ``variance`` is the sample
    variance of their logarithmic means, of which ``noise`` comes from their launches. The simulated
    test is that of `analysis.regression`. NaN if a group has one launch.
    """
    if min(launches) < 2:
        return math.nan
    deviation = max(deviation, SMALLEST)
    import numpy as np
    from scipy.optimize import brentq
    from scipy.special import stdtrit

    free = campaigns - 1 if campaigns else math.inf
    typical = deviation**2 / _median_of_variance(sum(launches) - 2)
    means = variance / _median_of_variance(free)
    random = np.random.default_rng(1)
    between = means * random.chisquare(free, ROUNDS) / free if campaigns else np.zeros(ROUNDS)
    squares = [
        typical * random.chisquare(count - 1, ROUNDS) / (count - 1) / count for count in launches
    ]
    own = squares[0] + squares[1]
    degrees = own**2 / sum(
        part**2 / (count - 1) for part, count in zip(squares, launches, strict=True)
    )
    limits = -stdtrit(np.minimum(degrees, free), SIGNIFICANCE / 2) * np.sqrt(own + 2.0 * between)
    spread = 2.0 * max(0.0, means - noise) + typical * sum(1.0 / one for one in launches)
    differences = random.normal(0.0, math.sqrt(spread), ROUNDS)

    def lacking(shift: float) -> float:
        return POWER - float(np.mean(np.abs(differences + shift) > limits))

    widest = float(limits.max() + np.abs(differences).max())
    if widest < TOLERANCE:
        return 0.0
    return math.expm1(brentq(lacking, 0.0, widest, xtol=TOLERANCE))


def _median_of_variance(degrees: float) -> float:
    """Median of a sample variance over the true one (Wilson and Hilferty): it is mostly smaller."""
    return (1.0 - 2.0 / (9.0 * degrees)) ** 3
