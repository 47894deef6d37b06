"""Axes: title, bounds and ticks."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from paceline.render.svg.scale import LinearScale, LogScale, Scale
from paceline.render.svg.text_metrics import text_width
from paceline.render.svg.ticks import (
    SMALLEST,
    finite,
    linear_bounds,
    linear_ticks,
    log_bounds,
    log_tick_labels,
    log_ticks,
    tick_labels,
)


@dataclass(frozen=True, slots=True)
class Tick:
    """A marked value of an axis."""

    value: float
    label: str


@dataclass(frozen=True)
class Axis:
    """An axis, independent of its length in pixels."""

    title: str
    low: float
    high: float
    ticks: tuple[Tick, ...]
    scale_type: type[LinearScale] | type[LogScale] = LinearScale

    def scale(self, start: float, end: float) -> Scale:
        """The scale from values to the pixels ``start`` to ``end``."""
        return self.scale_type(self.low, self.high, start, end)

    @property
    def label_width(self) -> float:
        return max((text_width(tick.label) for tick in self.ticks), default=0.0)


def linear_axis(
    title: str, values: Sequence[float], *, from_zero: bool = True, most_ticks: int = 6
) -> Axis:
    """An axis that holds ``values`` between round bounds."""
    low, high = linear_bounds(values, from_zero=from_zero)
    return _marked_axis(title, low, high, most_ticks)


def length_axis(title: str, values: Sequence[float], *, most_ticks: int = 8) -> Axis:
    """An axis for bars that start at zero: it ends with the longest, round or not."""
    low, high = linear_bounds(values)
    drawable = [*finite(values), 0.0]
    if max(drawable) > SMALLEST:
        high = max(drawable)
    return _marked_axis(title, low, high, most_ticks)


def window_axis(title: str, low: float, high: float, *, most_ticks: int = 8) -> Axis:
    """An axis between two bounds, which need not be round or contain zero."""
    return _marked_axis(title, low, high, most_ticks)


def _marked_axis(title: str, low: float, high: float, most_ticks: int) -> Axis:
    marked = linear_ticks(low, high, most_ticks)
    return Axis(title, low, high, _ticks(marked, tick_labels(marked)))


def log_axis(
    title: str,
    values: Sequence[float],
    *,
    label: Callable[[float], str] | None = None,
    most_ticks: int = 7,
) -> Axis:
    """A logarithmic axis that holds the positive ones of ``values``."""
    low, high = log_bounds(values)
    marked = log_ticks(low, high, most_ticks)
    labels = [label(value) for value in marked] if label else log_tick_labels(marked)
    return Axis(title, low, high, _ticks(marked, labels), LogScale)


def count_axis(title: str, counts: Sequence[float], pixels: float, *, logarithmic: bool) -> Axis:
    """An axis for numbers of devices: marked at the counts themselves, as far as they fit."""
    drawable = sorted({count for count in finite(counts) if count > 0}) or [1.0]
    if logarithmic:
        low, high = log_bounds(drawable)
        scale: Scale = LogScale(low, high, 0.0, pixels)
    else:
        low, high = 0.0, drawable[-1] * 1.04
        scale = LinearScale(low, high, 0.0, pixels)
    labels = log_tick_labels(drawable)
    kept = _without_overlap([scale(count) for count in drawable], labels)
    ticks = _ticks([drawable[i] for i in kept], [labels[i] for i in kept])
    return Axis(title, low, high, ticks, LogScale if logarithmic else LinearScale)


def _without_overlap(positions: Sequence[float], labels: Sequence[str]) -> list[int]:
    """Indices of labels that do not overlap; the last one is always kept."""
    kept: list[int] = []
    for index in reversed(range(len(positions))):
        right = positions[index] + text_width(labels[index]) / 2
        if not kept or right + 6 <= positions[kept[-1]] - text_width(labels[kept[-1]]) / 2:
            kept.append(index)
    return kept[::-1]


def _ticks(values: Sequence[float], labels: Sequence[str]) -> tuple[Tick, ...]:
    return tuple(Tick(value, label) for value, label in zip(values, labels, strict=True))
