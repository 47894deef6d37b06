"""Numbers as they are printed: one precision for a column, so that digits line up."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from paceline.report.text import MISSING


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number with the interval it lies in; an unknown bound is None."""

    value: float
    low: float | None = None
    high: float | None = None

    def scaled(self, factor: float) -> "Estimate":
        """The same estimate in another unit."""
        low = None if self.low is None else self.low * factor
        high = None if self.high is None else self.high * factor
        return Estimate(self.value * factor, low, high)

    @property
    def half_width(self) -> float | None:
        """Half the interval if the value is in its middle, as in ``value ± half_width``."""
        if self.low is None or self.high is None:
            return None
        below, above = self.value - self.low, self.high - self.value
        if min(below, above) < 0 or abs(above - below) > 0.05 * (above + below):
            return None
        return (above + below) / 2


def common_decimals(values: Iterable[float], significant: int = 3) -> int:
    """Decimals that give the typical one of ``values`` about ``significant`` digits."""
    sizes = sorted(abs(value) for value in values if math.isfinite(value) and value != 0)
    if not sizes:
        return 0
    typical = sizes[len(sizes) // 2]
    decimals = significant - 1 - math.floor(math.log10(typical) + 1e-9)
    return min(max(decimals, 0), 9)


def format_number(value: float | None, decimals: int, *, signed: bool = False) -> str:
    """``1,540.2``; unknown is a dash, infinite is ∞, and zero never has a sign."""
    if value is None or math.isnan(value):
        return MISSING
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    if abs(value) >= 1e15:
        return f"{value:.2e}"
    text = f"{value:{'+' if signed else ''},.{decimals}f}"
    return text.lstrip("+-") if not text.strip("+-0.,") else text


def short_number(value: float | None) -> str:
    """``value`` with about three significant digits."""
    if value is None:
        return MISSING
    return format_number(value, common_decimals([value]))


def estimate_text(estimate: Estimate, unit: str = "") -> str:
    """``187.6 ± 4.1 img/s``, or ``190 [178, 202] img/s`` where the interval is lopsided."""
    after = f" {unit}" if unit else ""
    low, high = estimate.low, estimate.high
    if low is None or high is None:
        return short_number(estimate.value) + after
    decimals = interval_decimals([estimate])
    value = format_number(estimate.value, decimals)
    if estimate.half_width is not None:
        return f"{value} ± {format_number(estimate.half_width, decimals)}{after}"
    return f"{value} [{format_number(low, decimals)}, {format_number(high, decimals)}]{after}"


def interval_decimals(estimates: Iterable[Estimate]) -> int:
    """Decimals that mean something: two digits of the intervals, else three of the values."""
    estimates = list(estimates)
    values = [estimate.value for estimate in estimates]
    widths = [e.high - e.low for e in estimates if e.low is not None and e.high is not None]
    if any(width > 0 for width in widths):
        by_interval = common_decimals([width / 2 for width in widths], significant=2)
        return min(by_interval, common_decimals(values, significant=5))
    return common_decimals(values)
