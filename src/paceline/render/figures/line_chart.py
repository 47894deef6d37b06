"""Curves over one axis, with their crossovers."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from paceline.render.number_format import Ranged, ranged_text, short_number
from paceline.render.safe_text import printable
from paceline.render.svg.axis import Axis, linear_axis, log_axis
from paceline.render.svg.colours import series_colour
from paceline.render.svg.element import document, element, group, line, text
from paceline.render.svg.legend import LegendEntry, Symbol
from paceline.render.svg.marks import band, marker, polyline
from paceline.render.svg.panel import Panel, xy_panel
from paceline.render.svg.text_metrics import text_width
from paceline.render.svg.ticks import finite

_MOST_MARKERS = 24


@dataclass(frozen=True)
class LineSeries:
    """A curve through points; intervals are drawn as a band.

    ``dashed`` is for predictions; ``colour`` is the number of the series whose colour it shares.
    """

    label: str
    points: tuple[tuple[float, Ranged], ...]
    dashed: bool = False
    colour: int | None = None


@dataclass(frozen=True, slots=True)
class Crossover:
    """Intersection of two curves; ``label`` names the result beyond it."""

    x: float
    y: float
    label: str = ""


@dataclass(frozen=True)
class LinesInfo:
    """Curves over one axis; titles contain the units."""

    x_title: str
    y_title: str
    series: tuple[LineSeries, ...]
    crossovers: tuple[Crossover, ...] = ()
    unit: str = ""
    log_x: bool = False
    log_y: bool = False


def draw(info: LinesInfo, width: float, height: float) -> str:
    xs = [x for series in info.series for x, _ in series.points]
    ys = [v for s in info.series for _, y in s.points for v in (y.value, y.low, y.high)]
    crossings = [c for c in info.crossovers if len(finite([c.x, c.y])) == 2]
    ticks = 7 if width > 560 else 5
    x_axis = _axis(info.x_title, [*xs, *(c.x for c in crossings)], info.log_x, ticks)
    y_axis = _axis(info.y_title, finite([*ys, *(c.y for c in crossings)]), info.log_y, 6)
    entries = [
        LegendEntry(series.label, _colour(series, number), symbol, number)
        for number, series in enumerate(info.series)
        for symbol in [Symbol.DASHES if series.dashed else Symbol.LINE_AND_POINT]
    ]
    panel = xy_panel(width, height, x_axis, y_axis, entries)
    curves = [_curve(panel, info, number) for number in range(len(info.series))]
    lines = [_positions(panel, series) for series in info.series]
    marks = [_crossover(panel, crossing, lines) for crossing in crossings]
    crossed = "; ".join(f"crossover at {short_number(c.x)}: {c.label}" for c in crossings)
    labels = ", ".join(series.label for series in info.series)
    description = f"{info.y_title} against {info.x_title}: {labels}. {crossed}"
    return document(width, height, info.y_title, description, panel.markup, *curves, *marks)


def _axis(title: str, values: list[float], logarithmic: bool, ticks: int) -> Axis:
    if logarithmic:
        return log_axis(title, values, most_ticks=ticks)
    drawable = finite(values)
    from_zero = bool(drawable) and 0 <= min(drawable) <= 0.5 * max(drawable)
    return linear_axis(title, values, from_zero=from_zero, most_ticks=ticks)


def _curve(panel: Panel, info: LinesInfo, number: int) -> str:
    series = info.series[number]
    points, positions = _drawn(series), _positions(panel, series)
    bounds = [(panel.x(x), y.bounds) for x, y in points]
    lower = [(x, panel.y(b[0])) for x, b in bounds if b is not None]
    upper = [(x, panel.y(b[1])) for x, b in bounds if b is not None]
    parts = [band(upper, lower), polyline(positions, "dashes" if series.dashed else "")]
    if len(points) <= _MOST_MARKERS:
        for (x, y), (px, py) in zip(points, positions, strict=True):
            tip = f"{series.label}\n{short_number(x)}: {ranged_text(y, info.unit)}"
            parts.append(marker(px, py, number, tip))
    return group(*parts, class_=_colour(series, number))


def _drawn(series: LineSeries) -> list[tuple[float, Ranged]]:
    """The points of a curve that can be drawn, from left to right."""
    points = ((x, y) for x, y in series.points if len(finite([x, y.value])) == 2)
    return sorted(points, key=lambda point: point[0])


def _positions(panel: Panel, series: LineSeries) -> list[tuple[float, float]]:
    return [(panel.x(x), panel.y(y.value)) for x, y in _drawn(series)]


def _colour(series: LineSeries, number: int) -> str:
    return series_colour(number if series.colour is None else series.colour)


def _crossover(
    panel: Panel, crossing: Crossover, lines: Sequence[Sequence[tuple[float, float]]]
) -> str:
    x, y = panel.x(crossing.x), panel.y(crossing.y)
    label = printable(crossing.label) or short_number(crossing.x)
    width = text_width(label)
    fits_right = x + 10 + width <= panel.right
    anchor, label_x = ("start", x + 8) if fits_right else ("end", x - 8)
    left = label_x if fits_right else label_x - width
    middles = (panel.top + 8, panel.bottom - 12)
    middle = max(middles, key=lambda own: _clearance(own, left, left + width, lines))
    return group(
        line(x, panel.top, x, panel.bottom, class_="connector"),
        element("circle", cx=x, cy=y, r=6, class_="ring", tip=label),
        text(label, label_x, middle + 4, class_="label", anchor=anchor),
        class_="crossover",
    )


def _clearance(
    middle: float, left: float, right: float, lines: Sequence[Sequence[tuple[float, float]]]
) -> float:
    """Pixels from a height to the nearest curve between two horizontal positions, at most 20."""
    clear = 20.0
    for points in lines:
        for (x0, y0), (x1, y1) in pairwise(points):
            if x0 <= right and x1 >= left and x1 > x0:
                ends = (
                    y0 + (y1 - y0) * (min(max(at, x0), x1) - x0) / (x1 - x0) for at in (left, right)
                )
                low, high = sorted(ends)
                clear = min(clear, max(low - middle, middle - high, 0.0))
    return clear
