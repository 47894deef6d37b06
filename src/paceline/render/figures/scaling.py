"""F1: throughput or speed-up against the number of devices, with the ideal line."""

from dataclasses import dataclass

from paceline.render.numbers import Ranged, ranged_text
from paceline.render.svg.axis import count_axis, linear_axis, log_axis
from paceline.render.svg.element import document, group
from paceline.render.svg.legend import LegendEntry, Symbol
from paceline.render.svg.marks import band, error_bar, marker, polyline
from paceline.render.svg.panel import Panel, xy_panel
from paceline.render.svg.series import series_colour
from paceline.render.svg.ticks import finite

_LOGARITHMIC_FROM = 8


@dataclass(frozen=True, slots=True)
class ScalingPoint:
    """What ``devices`` devices reached; all of them together."""

    devices: int
    value: Ranged


@dataclass(frozen=True)
class ScalingSeries:
    """One system; a prediction is drawn dashed with a band, a measurement with error bars."""

    label: str
    points: tuple[ScalingPoint, ...]
    is_predicted: bool = False

    @property
    def drawable(self) -> list[ScalingPoint]:
        """Points with finite numbers, fewest devices first."""
        usable = [p for p in self.points if p.devices > 0 and finite([p.value.value])]
        return sorted(usable, key=lambda point: point.devices)

    @property
    def ideal_per_device(self) -> float | None:
        """What each device would add if scaling were perfect from the first point on."""
        points = self.drawable
        return points[0].value.value / points[0].devices if points else None


@dataclass(frozen=True)
class ScalingInfo:
    """Series of one quantity; ``title`` names it with its unit: ``throughput (img/s)``.

    ``ideal`` draws what perfect scaling from each series' first point would give, ``bound`` a
    thin line that results should not be below.
    """

    title: str
    series: tuple[ScalingSeries, ...]
    unit: str = ""
    device_title: str = "devices"
    ideal: bool = True
    bound: ScalingSeries | None = None

    @property
    def drawn(self) -> tuple[ScalingSeries, ...]:
        """Every series with numbers in it."""
        return self.series if self.bound is None else (*self.series, self.bound)


def draw(info: ScalingInfo, width: float, height: float) -> str:
    """The figure as SVG."""
    counts = [p.devices for series in info.drawn for p in series.drawable] or [1]
    logarithmic = max(counts) / min(counts) >= _LOGARITHMIC_FROM
    perfect = _ideals(info)
    values = [v for s in info.drawn for p in s.drawable for v in _extent(p.value)]
    values += [slope * n for slope, _ in perfect.lines for n in (min(counts), max(counts))]
    x = count_axis(info.device_title, counts, width - 90, logarithmic=logarithmic)
    y = log_axis(info.title, values) if logarithmic else linear_axis(info.title, values)
    panel = xy_panel(width, height, x, y, _legend(info, perfect))
    ideals = [_ideal(panel, slope, colour, counts) for slope, colour in perfect.lines]
    drawn = [_bound(panel, info.bound)] if info.bound is not None else []
    drawn += [_series(panel, info, number) for number in range(len(info.series))]
    labels = ", ".join(series.label for series in info.series)
    description = f"{info.title} against {info.device_title}: {labels}."
    return document(width, height, info.title, description, panel.markup, *ideals, *drawn)


def _extent(value: Ranged) -> list[float]:
    return finite([value.value, value.low, value.high])


@dataclass(frozen=True)
class _Ideals:
    """What perfect scaling is called in the legend, and slope and colour of its lines."""

    label: str
    lines: list[tuple[float, str]]


def _ideals(info: ScalingInfo) -> _Ideals:
    """The ideal of each measured series, or of the predicted ones where none was measured.

    Series that share it get one neutral line, and more than three that do not only the steepest.
    """
    measured = any(series.drawable and not series.is_predicted for series in info.series)
    known = [
        (slope, series_colour(number))
        for number, series in enumerate(info.series)
        if (slope := series.ideal_per_device or 0.0) > 0 and not (measured and series.is_predicted)
    ]
    if not info.ideal or not known:
        return _Ideals("", [])
    steepest = max(slope for slope, _ in known)
    if steepest - min(slope for slope, _ in known) <= 0.02 * steepest:
        return _Ideals("perfect scaling", [(known[0][0], "neutral")])
    if len(known) > 3:
        return _Ideals("perfect scaling of the fastest", [(steepest, "neutral")])
    return _Ideals("perfect scaling", known)


def _legend(info: ScalingInfo, ideals: _Ideals) -> list[LegendEntry]:
    entries = [
        LegendEntry(
            series.label,
            series_colour(number),
            Symbol.DASHES if series.is_predicted else Symbol.LINE_AND_POINT,
            number,
        )
        for number, series in enumerate(info.series)
    ]
    if ideals.lines:
        entries.append(LegendEntry(ideals.label, "neutral", Symbol.DOTS))
    if info.bound is not None:
        entries.append(LegendEntry(info.bound.label, "neutral", Symbol.LINE))
    return entries


def _bound(panel: Panel, bound: ScalingSeries) -> str:
    places = [(panel.x(p.devices), panel.y(p.value.value)) for p in bound.drawable]
    return group(polyline(places), class_="neutral bound")


def _ideal(panel: Panel, slope: float, colour: str, counts: list[int]) -> str:
    """The ideal line, ending where the plot does."""
    ends = [(panel.x(n), panel.y(slope * n)) for n in (min(counts), max(counts))]
    return group(polyline(ends, "dots"), class_=f"{colour} ideal")


def _series(panel: Panel, info: ScalingInfo, number: int) -> str:
    series = info.series[number]
    points = series.drawable
    places = [(panel.x(p.devices), panel.y(p.value.value)) for p in points]
    parts = [polyline(places, "dashes" if series.is_predicted else "")]
    bounded = [(panel.x(p.devices), p.value.bounds) for p in points]
    intervals = [(x, panel.y(b[0]), panel.y(b[1])) for x, b in bounded if b is not None]
    if series.is_predicted and len(intervals) > 1:
        upper = [(x, high) for x, _, high in intervals]
        parts.append(band(upper, [(x, low) for x, low, _ in intervals]))
    else:
        parts += [error_bar(x, low, high) for x, low, high in intervals]
    for point, (x, y) in zip(points, places, strict=True):
        tip = f"{series.label}\n{point.devices:,}: {ranged_text(point.value, info.unit)}"
        parts.append(marker(x, y, number, tip))
    return group(*parts, class_=series_colour(number))
