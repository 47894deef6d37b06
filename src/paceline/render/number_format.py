"""Formatting of numbers and intervals, with one precision per column."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from paceline.render.safe_text import MISSING
from paceline.units import format_bytes, format_count, seconds_unit

if TYPE_CHECKING:
    from paceline.stats.estimate import Estimate


@dataclass(frozen=True, slots=True)
class Ranged:
    """A number with its interval; unknown bounds are None or NaN."""

    value: float
    low: float | None = None
    high: float | None = None

    @classmethod
    def of(cls, estimate: "Estimate") -> "Ranged":
        return cls(estimate.mean, estimate.low, estimate.high)

    @property
    def bounds(self) -> tuple[float, float] | None:
        """Both bounds; None if one is unknown."""
        if self.low is None or self.high is None or math.isnan(self.low + self.high):
            return None
        return self.low, self.high

    def scaled(self, factor: float) -> "Ranged":
        """The same number in another unit."""
        low = None if self.low is None else self.low * factor
        high = None if self.high is None else self.high * factor
        return Ranged(self.value * factor, low, high)

    @property
    def half_width(self) -> float | None:
        """Half the interval if the value is in its middle, as in ``value ± half_width``."""
        if self.bounds is None:
            return None
        low, high = self.bounds
        below, above = self.value - low, high - self.value
        # Intervals on logarithms are slightly asymmetric; up to 5 % "±" is accurate to its digits.
        if min(below, above) < 0 or abs(above - below) > 0.05 * (above + below):
            return None
        return (above + below) / 2


def common_decimals(values: Iterable[float], significant: int = 3, least: int = 0) -> int:
    """Decimals that give the median of ``values`` about ``significant`` digits, from ``least``."""
    sizes = sorted(abs(value) for value in values if math.isfinite(value) and value != 0)
    if not sizes:
        return 0
    typical = sizes[(len(sizes) - 1) // 2]
    decimals = significant - 1 - math.floor(math.log10(typical) + 1e-9)
    return min(max(decimals, least), 9)


def format_number(value: float | None, decimals: int, *, signed: bool = False) -> str:
    """``1,540.2``; unknown is a dash, infinite is ∞, and zero never has a sign.

    Negative ``decimals`` round to tens, hundreds and so on.
    """
    if value is None or math.isnan(value):
        return MISSING
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    if abs(value) >= 1e15:
        return f"{value:.2e}"
    if decimals < 0:
        value, decimals = round(value, decimals), 0
    text = f"{value:{'+' if signed else ''},.{decimals}f}"
    return text.lstrip("+-") if not text.strip("+-0.,") else text


def short_number(value: float | None) -> str:
    """``value`` with about three significant digits; millions and more with a prefix."""
    if value is None:
        return MISSING
    if 1e6 <= abs(value) < 1e18:
        return format_count(value)
    return format_number(value, common_decimals([value]))


def rounded(value: float | None) -> float | None:
    """``value`` with three significant digits, for a predicted number without its interval."""
    return None if value is None else float(f"{value:.3g}")


def percent(share: float) -> str:
    """``94 %`` of a share of 0.94."""
    return f"{format_number(share * 100, 0)} %"


def interval_text(number: Ranged, decimals: int, *, symmetric: bool) -> str:
    """``± 4.1``, or ``[178, 202]`` if not ``symmetric``; empty if the bounds are unknown."""
    if number.bounds is None:
        return ""
    if symmetric:
        return f"± {format_number(number.half_width, decimals)}"
    low, high = (format_number(bound, decimals) for bound in number.bounds)
    return f"[{low}, {high}]"


def ranged_text(number: Ranged, unit: str = "") -> str:
    """``187.6 ± 4.1 img/s``, or ``190 [178, 202] img/s`` if the interval is asymmetric."""
    decimals = interval_decimals([number])
    interval = interval_text(number, decimals, symmetric=number.half_width is not None)
    parts = (format_number(number.value, decimals), interval, unit)
    return " ".join(part for part in parts if part)


def interval_decimals(numbers: Iterable[Ranged]) -> int:
    """Significant decimals: two digits of the intervals, else three of the values.

    Values keep two to five digits: an interval far wider than its value does not round it to zero.
    """
    numbers = list(numbers)
    values = [number.value for number in numbers]
    widths = [e.bounds[1] - e.bounds[0] for e in numbers if e.bounds is not None]
    if any(width > 0 for width in widths):
        fewest, most = (common_decimals(values, significant=n, least=-9) for n in (2, 5))
        by_interval = common_decimals([width / 2 for width in widths], significant=2, least=-9)
        return min(max(by_interval, fewest), most)
    return common_decimals(values)


def short_bytes(size: float) -> str:
    """``10 kB``: a size without insignificant digits."""
    if not 1 <= size < 1e18:
        return f"{size:.3g} B"
    return format_bytes(size).replace(".00 ", " ").replace(".0 ", " ")


def short_seconds(seconds: float) -> str:
    """``200 us``: a duration without insignificant digits."""
    factor, unit = (1.0, "s") if 1 <= seconds < 36000 else seconds_unit(seconds)
    return f"{float(f'{seconds * factor:.3g}'):g} {unit}"
