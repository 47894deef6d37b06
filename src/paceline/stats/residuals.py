"""Checks of residuals: normality, trend with time, and variance that depends on the level."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from paceline.stats.distributions import SIGNIFICANCE
from paceline.stats.normality import normality_chance

POWERS = {1.0: "none", 0.5: "square root", 0.0: "logarithm", -1.0: "reciprocal"}
"""Box-Cox transformations by power; the nearest is suggested."""


@dataclass(frozen=True)
class ResidualChecks:
    """p-values of normality, no trend with time, and equal variance; NaN with too few residuals.

    ``transformation`` stabilises the variance; "none" if it is equal.
    """

    normality_p: float
    trend_p: float
    spread_p: float
    transformation: str

    @property
    def words(self) -> list[str]:
        """Violated assumptions, each with a remedy."""
        found = []
        if self.normality_p < SIGNIFICANCE:
            found.append("residuals are not normal: use the shares of variation, not the p-values")
        if self.trend_p < SIGNIFICANCE:
            found.append("residuals drift with time: check load and temperature, then rerun")
        if self.transformation != "none":
            found.append(
                f"spread grows with the level: transform the response ({self.transformation})"
            )
        return found


def check_residuals(
    residuals: Sequence[float], fitted: Sequence[float], order: Sequence[float] | None = None
) -> ResidualChecks:
    """Check the residuals of ``fitted`` values; ``order`` is the time of each."""
    moments = order if order is not None else range(len(residuals))
    sizes = [abs(one) for one in residuals]
    scale = max((abs(value) for value in fitted), default=0.0)
    if max(sizes, default=0.0) <= 1e-12 * scale:  # a saturated model: only rounding is left
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
    """Two-sided p-value of Spearman's rank correlation; NaN with fewer than five values."""
    count = len(first)
    if count < 5 or len(set(first)) < 2 or len(set(second)) < 2:
        return math.nan
    from scipy.stats import spearmanr

    return float(spearmanr(first, second).pvalue)


def _transformation(sizes: Sequence[float], fitted: Sequence[float]) -> str:
    """Power 1 - slope, with the slope of log |residual| over log level (Box, Hunter, Hunter)."""
    floor = 1e-9 * max(sizes)
    levels = [math.log(value) for value in fitted]
    if len(set(levels)) < 2:
        return "none"
    widths = [math.log(max(size, floor)) for size in sizes]
    slope = statistics.linear_regression(levels, widths).slope
    return POWERS[min(POWERS, key=lambda power: abs(1.0 - slope - power))]
