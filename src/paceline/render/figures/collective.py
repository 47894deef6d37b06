"""Time of a collective against its size, measured and fitted, both axes logarithmic."""

from dataclasses import dataclass

from paceline.render.number_format import Ranged, ranged_text, short_bytes, short_seconds
from paceline.render.svg.axis import log_axis
from paceline.render.svg.colours import series_colour
from paceline.render.svg.element import document, group
from paceline.render.svg.legend import LegendEntry, Symbol
from paceline.render.svg.marks import error_bar, marker, polyline
from paceline.render.svg.panel import Panel, xy_panel
from paceline.render.svg.ticks import finite
from paceline.units import format_bytes, format_seconds, seconds_unit


@dataclass(frozen=True)
class CollectiveSeries:
    """One operation, rank count and backend; sizes in bytes, times in seconds."""

    label: str
    measured: tuple[tuple[float, Ranged], ...]
    fitted: tuple[tuple[float, float], ...] = ()


@dataclass(frozen=True)
class CollectiveInfo:
    """Series to compare; ``title`` names the collective."""

    series: tuple[CollectiveSeries, ...]
    title: str = "time of an all-reduce"


def draw(info: CollectiveInfo, width: float, height: float) -> str:
    sizes = [size for s in info.series for size, _ in (*s.measured, *s.fitted)]
    times = [t for s in info.series for _, r in s.measured for t in _extent(r)]
    times += [seconds for s in info.series for _, seconds in s.fitted]
    x = log_axis("message size", sizes, label=short_bytes, most_ticks=7 if width > 560 else 5)
    y = log_axis(info.title, times, label=short_seconds)
    panel = xy_panel(width, height, x, y, _legend(info))
    parts = [_series(panel, series, number) for number, series in enumerate(info.series)]
    labels = ", ".join(series.label for series in info.series)
    description = f"{info.title} against message size, measured points and fitted lines: {labels}."
    return document(width, height, info.title, description, panel.markup, *parts)


def _extent(value: Ranged) -> list[float]:
    return [v for v in finite([value.value, value.low, value.high]) if v > 0]


def _legend(info: CollectiveInfo) -> list[LegendEntry]:
    entries = [
        LegendEntry(s.label, series_colour(number), Symbol.POINT, number)
        for number, s in enumerate(info.series)
    ]
    if any(s.fitted for s in info.series):
        entries.append(LegendEntry("fitted", "neutral", Symbol.LINE))
    return entries


def _series(panel: Panel, series: CollectiveSeries, number: int) -> str:
    fitted = [
        (panel.x(size), panel.y(seconds))
        for size, seconds in series.fitted
        if len(finite([size, seconds])) == 2 and size > 0 and seconds > 0
    ]
    parts = [polyline(fitted)]
    for size, time in series.measured:
        if len(finite([size, time.value])) < 2 or size <= 0 or time.value <= 0:
            continue
        x, y = panel.x(size), panel.y(time.value)
        if time.bounds is not None:
            parts.append(error_bar(x, panel.y(time.bounds[0]), panel.y(time.bounds[1])))
        factor, unit = seconds_unit(time.value)
        rate = f"{format_bytes(size / time.value)}/s"
        tip = f"{series.label}\n{format_bytes(size)}: {ranged_text(time.scaled(factor), unit)}"
        parts.append(marker(x, y, number, f"{tip}\n{rate} ({format_seconds(time.value)})"))
    return group(*parts, class_=series_colour(number))
