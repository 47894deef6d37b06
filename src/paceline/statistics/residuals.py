"""What residuals say of a model: normal, without trend in time, as wide at every level or not."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from paceline.statistics.distributions import SIGNIFICANCE, lower_tail
from paceline.statistics.normality import normality_chance
from paceline.statistics.rank_tests import midranks

POWERS = {1.0: "none", 0.5: "square root", 0.0: "logarithm", -1.0: "reciprocal"}
"""Transformations by the power that they are; the nearest is suggested."""


@dataclass(frozen=True)
class ResidualChecks:
    """Chances that sound residuals would look so: normality, no trend in time, even spread.

    ``transformation`` is what would even the spread out; "none" where it is even. NaN where
    there are too few residuals to tell.
    """

    normality_p: float
    trend_p: float
    spread_p: float
    transformation: str

    @property
    def words(self) -> list[str]:
        """What is wrong, each with what to do."""
        found = []
        if self.normality_p < SIGNIFICANCE:
            found.append("residuals are not normal: trust the allocation of variation, not p")
        if self.trend_p < SIGNIFICANCE:
            found.append("residuals drift with time: was the machine busy or hot? run it again")
        if self.transformation != "none":
            found.append(f"spread grows with the level: take the {self.transformation}")
        return found


def check_residuals(
    residuals: Sequence[float], fitted: Sequence[float], order: Sequence[float] | None = None
) -> ResidualChecks:
    """Check residuals of ``fitted`` values; ``order`` is when each was measured."""
    moments = order if order is not None else range(len(residuals))
    sizes = [abs(one) for one in residuals]
    scale = max((abs(value) for value in fitted), default=0.0)
    if max(sizes, default=0.0) <= 1e-12 * scale:
        return ResidualChecks(math.nan, math.nan, math.nan, "none")
    spread = spearman_chance(sizes, fitted)
    wider = spread < SIGNIFICANCE and min(fitted) > 0.0
    return ResidualChecks(
        normality_chance(residuals),
        spearman_chance(residuals, list(moments)),
        spread,
        _transformation(sizes, fitted) if wider else "none",
    )


def spearman_chance(first: Sequence[float], second: Sequence[float]) -> float:
    """Two-sided chance that unrelated values would be ordered alike so much; NaN below five."""
    count = len(first)
    if count < 5 or len(set(first)) < 2 or len(set(second)) < 2:
        return math.nan
    correlation = statistics.correlation(midranks(first), midranks(second))
    if abs(correlation) >= 1.0:
        return 0.0
    score = abs(correlation) * math.sqrt((count - 2) / (1.0 - correlation**2))
    return 2.0 * lower_tail(-score, count - 2)


def _transformation(sizes: Sequence[float], fitted: Sequence[float]) -> str:
    """By the slope of residuals' size over level, both as logarithms (Box and Cox's power)."""
    floor = 1e-9 * max(sizes)
    levels = [math.log(value) for value in fitted]
    if len(set(levels)) < 2:
        return "none"
    widths = [math.log(max(size, floor)) for size in sizes]
    slope = statistics.linear_regression(levels, widths).slope
    return POWERS[min(POWERS, key=lambda power: abs(1.0 - slope - power))]
