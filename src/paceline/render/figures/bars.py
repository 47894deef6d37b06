"""Grouped bars with intervals, for machines, links or frameworks."""

from dataclasses import dataclass

from paceline.render.number_format import Ranged, ranged_text, short_number
from paceline.render.svg.axis import length_axis
from paceline.render.svg.colours import series_colour
from paceline.render.svg.element import document, group, text
from paceline.render.svg.legend import LegendEntry, legend
from paceline.render.svg.marks import bar, error_bar_across
from paceline.render.svg.row_layout import rows
from paceline.render.svg.scale import Scale
from paceline.render.svg.ticks import finite

_BAR = 15.0


@dataclass(frozen=True)
class BarSeries:
    """One value per group; None if there is none."""

    label: str
    values: tuple[Ranged | None, ...]


@dataclass(frozen=True)
class BarsInfo:
    """Groups top to bottom, the bars of all series in each; ``title`` contains the unit."""

    title: str
    groups: tuple[str, ...]
    series: tuple[BarSeries, ...]
    unit: str = ""


def draw(info: BarsInfo, width: float) -> str:
    values = [value for series in info.series for value in series.values if value is not None]
    extents = finite(edge for value in values for edge in (value.value, value.low, value.high))
    axis = length_axis(info.title, extents)
    entries = [LegendEntry(s.label, series_colour(n)) for n, s in enumerate(info.series)]
    key, key_height = legend(entries if len(entries) > 1 else [], 0, width, 0)
    ends = [short_number(value.value) for value in values]
    count = max(len(info.series), 1)
    height = count * _BAR + (count - 1) * 2
    layout = rows(info.groups, width, top=key_height + 6, bar_height=height, gap=14, ends=ends)
    scale = layout.scale(axis)
    parts: list[str] = []
    for number, series in enumerate(info.series):
        for index, (name, value) in enumerate(zip(info.groups, series.values, strict=True)):
            top = layout.bar_top(index) + number * (_BAR + 2)
            if value is not None and finite([value.value]):
                tip = f"{name} · {series.label}\n{ranged_text(value, info.unit)}"
                parts.append(_bar(value, scale, top, series_colour(number), tip))
    labels = ", ".join(series.label for series in info.series)
    description = f"{info.title} of {', '.join(info.groups)}: {labels}."
    return document(
        width, layout.height, info.title, description, key, layout.backdrop(axis), *parts
    )


def _bar(value: Ranged, scale: Scale, top: float, colour: str, tip: str) -> str:
    start, end = scale(0.0), scale(value.value)
    parts = [bar(start, top, end - start, _BAR, tip=tip)]
    far = max(start, end)
    if value.bounds is not None:
        low, high = (scale(bound) for bound in value.bounds)
        parts.append(group(error_bar_across(top + _BAR / 2, low, high, 3), class_="over"))
        far = max(far, high)
    label = text(short_number(value.value), far + 7, top + _BAR - 3.5, class_="value")
    return group(*parts, class_=colour) + label
