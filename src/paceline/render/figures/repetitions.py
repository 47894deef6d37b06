"""Launches as points, with their mean and its interval below them, by configuration."""

from dataclasses import dataclass

from paceline.render.number_format import Ranged, ranged_text, short_number
from paceline.render.svg.axis import linear_axis
from paceline.render.svg.element import document, element, group, text
from paceline.render.svg.legend import LegendEntry, Symbol, legend
from paceline.render.svg.marks import error_bar_across, marker
from paceline.render.svg.row_layout import rows
from paceline.render.svg.scale import Scale
from paceline.render.svg.ticks import finite

_ROW = 22.0
_MOST_POINTS = 60
"""Limit of points in a row; of more launches, evenly spaced quantiles are drawn."""
_FROM_ZERO_UNLESS = 0.5


@dataclass(frozen=True)
class RepeatedRow:
    """A configuration: each launch's value, and their mean with its interval."""

    label: str
    values: tuple[float, ...]
    mean: Ranged


@dataclass(frozen=True)
class RepetitionsInfo:
    """Configurations top to bottom; ``title`` contains the unit."""

    title: str
    rows: tuple[RepeatedRow, ...]
    unit: str = ""


def draw(info: RepetitionsInfo, width: float) -> str:
    extents = finite(
        value
        for row in info.rows
        for value in (*row.values, row.mean.value, row.mean.low, row.mean.high)
    )
    low, high = min(extents, default=0.0), max(extents, default=1.0)
    from_zero = low < _FROM_ZERO_UNLESS * high
    axis = linear_axis(info.title, extents, from_zero=from_zero, most_ticks=8 if width > 560 else 5)
    entries = [
        LegendEntry("a launch", "c1", Symbol.POINT),
        LegendEntry("mean and 95 % interval", "neutral", Symbol.LINE_AND_POINT, 3),
    ]
    key, key_height = legend(entries, 0, width, 0)
    ends = [short_number(row.mean.value) for row in info.rows]
    layout = rows(
        [row.label for row in info.rows],
        width,
        top=key_height + 6,
        bar_height=_ROW,
        gap=10,
        ends=ends,
    )
    scale = layout.scale(axis)
    parts = [
        _row(row, scale, layout.bar_top(number), layout.right, info.unit)
        for number, row in enumerate(info.rows)
    ]
    description = "; ".join(f"{row.label}: {ranged_text(row.mean, info.unit)}" for row in info.rows)
    return document(
        width, layout.height, info.title, description, key, layout.backdrop(axis), *parts
    )


def _row(row: RepeatedRow, scale: Scale, top: float, right: float, unit: str) -> str:
    shown = _thinned(sorted(finite(row.values)))
    points = [
        element(
            "circle",
            cx=scale(value),
            cy=top + 6,
            r=3.2,
            class_="marker",
            tip=f"{row.label}\na launch: {short_number(value)} {unit}",
        )
        for value in shown
    ]
    if not finite([row.mean.value]):
        return group(*points, class_="c1 cloud")
    middle = top + 16
    parts = [
        marker(scale(row.mean.value), middle, 3, f"{row.label}\n{ranged_text(row.mean, unit)}")
    ]
    bounds = finite(row.mean.bounds or ())
    if len(bounds) == 2:
        parts.insert(0, error_bar_across(middle, scale(bounds[0]), scale(bounds[1]), 3))
    label = text(short_number(row.mean.value), right + 10, top + _ROW / 2 + 4, class_="value")
    return group(*points, class_="c1 cloud") + group(*parts, class_="neutral") + label


def _thinned(values: list[float]) -> list[float]:
    """At most `_MOST_POINTS` values, including the smallest and the largest."""
    if len(values) <= _MOST_POINTS:
        return values
    last = len(values) - 1
    return [values[round(index * last / (_MOST_POINTS - 1))] for index in range(_MOST_POINTS)]
