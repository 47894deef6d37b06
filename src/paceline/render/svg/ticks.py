"""Round numbers for an axis, and their labels."""

import math
from collections.abc import Iterable, Sequence

from paceline.render.number_format import format_number

LARGEST, SMALLEST = 1e100, 1e-100
"""Limits of values, so that ratios do not overflow."""

_PREFIXES = ((1e12, "T"), (1e9, "G"), (1e6, "M"))


def finite(values: Iterable[float | None]) -> list[float]:
    return [
        value
        for value in values
        if value is not None and math.isfinite(value) and abs(value) <= LARGEST
    ]


def linear_bounds(values: Sequence[float], *, from_zero: bool = True) -> tuple[float, float]:
    """Round bounds that contain all ``values``; never empty."""
    drawable = finite(values)
    if from_zero:
        drawable = [*drawable, 0.0]
    low, high = min(drawable, default=0.0), max(drawable, default=1.0)
    if high - low <= max(1e-12 * max(abs(low), abs(high)), SMALLEST):
        room = abs(high) * 0.5 if abs(high) > SMALLEST else 1.0
        low, high = (low, high + room) if from_zero else (low - room, high + room)
    step = nice_step(high - low, 5)
    return _floor(low, step) * step, -_floor(-high, step) * step


def linear_ticks(low: float, high: float, most: int = 6) -> list[float]:
    """At most ``most`` round values from ``low`` to ``high``, equally spaced."""
    step = nice_step(high - low, most - 1)
    first, last = -_floor(-low, step), _floor(high, step)
    while last - first + 1 > most:
        step = nice_step(step * 1.01, 1)
        first, last = -_floor(-low, step), _floor(high, step)
    return [index * step for index in range(int(first), int(last) + 1)]


def nice_step(span: float, parts: int) -> float:
    """The smallest of 1, 2, 5 times a power of ten that covers ``span`` in ``parts`` steps."""
    if not (math.isfinite(span) and span > 0):
        return 1.0
    rough = span / max(parts, 1)
    power = 10.0 ** math.floor(math.log10(rough))
    for multiple in (1.0, 2.0, 5.0):
        if multiple * power >= rough * (1 - 1e-9):
            return multiple * power
    return 10.0 * power


def log_bounds(values: Sequence[float]) -> tuple[float, float]:
    """Bounds that contain all positive ``values`` with a margin; never empty."""
    drawable = [value for value in finite(values) if value > SMALLEST]
    low, high = min(drawable, default=1.0), max(drawable, default=10.0)
    if high / low < 2:
        low, high = low / 2, high * 2
    room = (high / low) ** 0.04
    return low / room, high * room


def log_ticks(low: float, high: float, most: int = 7) -> list[float]:
    """Powers of ten between the bounds, with their multiples by 2 and 5 if there are few."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    stride = max(1, math.ceil((last - first + 1) / most))
    for multiples in ((1, 2, 5), (1, 3), (1,)):
        ticks = [m * 10.0**p for p in range(first, last + 1, stride) for m in multiples]
        inside = [tick for tick in ticks if low <= tick <= high]
        if len(inside) <= most and (stride == 1 or multiples == (1,)):
            break
    return inside or [low, high]


def tick_labels(ticks: Sequence[float]) -> list[str]:
    """Ticks as text of one precision; large ones with a prefix: ``1.5M``."""
    largest = max(map(abs, ticks), default=0.0)
    if largest >= 1e15 or 0 < largest < 1e-6:
        return [f"{tick:.3g}" for tick in ticks]
    factor, prefix = next(((f, p) for f, p in _PREFIXES if largest >= f), (1.0, ""))
    scaled = [tick / factor for tick in ticks]
    decimals = next((d for d in range(10) if _exact(scaled, d)), 9)
    return [
        format_number(value, decimals) + prefix if value or not prefix else "0" for value in scaled
    ]


def log_tick_labels(ticks: Sequence[float]) -> list[str]:
    """Ticks of a logarithmic axis, each as short as possible: ``0.001``, ``20``, ``3M``."""
    return [tick_labels([tick])[0] for tick in ticks]


def _exact(values: Sequence[float], decimals: int) -> bool:
    allowed = 1e-6 * max(map(abs, values))
    return all(abs(round(value, decimals) - value) <= allowed for value in values)


def _floor(value: float, step: float) -> float:
    """Number of steps in ``value``, tolerant of rounding errors."""
    return math.floor(value / step + 1e-9)
