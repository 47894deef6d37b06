"""Throughput or speed-up against the number of devices, with the ideal line."""

from collections.abc import Sequence
from dataclasses import dataclass

from paceline.render.number_format import Ranged, percent, ranged_text, short_number
from paceline.render.safe_text import MISSING
from paceline.render.svg.axis import count_axis, linear_axis, log_axis
from paceline.render.svg.colours import series_colour
from paceline.render.svg.element import document, group
from paceline.render.svg.legend import LegendEntry, Symbol
from paceline.render.svg.marks import band, error_bar, marker, polyline
from paceline.render.svg.panel import Panel, xy_panel
from paceline.render.svg.ticks import finite
from paceline.render.table import Align, Cell, Column, Table

_LOGARITHMIC_FROM = 8


@dataclass(frozen=True, slots=True)
class ScalingPoint:
    """The total value of ``devices`` devices."""

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
        """Value per device of the first point, which perfect scaling keeps."""
        points = self.drawable
        return points[0].value.value / points[0].devices if points else None


@dataclass(frozen=True)
class ScalingInfo:
    """Series of one quantity; ``title`` names it with its unit: ``throughput (img/s)``.

    ``ideal`` draws perfect scaling from the first point of each series, ``bound`` a thin line as
    a lower bound.
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
    """Label of perfect scaling in the legend, and slope and colour of its lines."""

    label: str
    lines: list[tuple[float, str]]


def _ideals(info: ScalingInfo) -> _Ideals:
    """The ideal line of each measured series, or of predicted ones if none was measured.

    Series with the same ideal share a neutral line; of more than three different ones, only the
    steepest is drawn.
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
    positions = [(panel.x(p.devices), panel.y(p.value.value)) for p in bound.drawable]
    return group(polyline(positions), class_="neutral bound")


def _ideal(panel: Panel, slope: float, colour: str, counts: list[int]) -> str:
    ends = [(panel.x(n), panel.y(slope * n)) for n in (min(counts), max(counts))]
    return group(polyline(ends, "dots"), class_=f"{colour} ideal")


def _series(panel: Panel, info: ScalingInfo, number: int) -> str:
    series = info.series[number]
    points = series.drawable
    positions = [(panel.x(p.devices), panel.y(p.value.value)) for p in points]
    parts = [polyline(positions, "dashes" if series.is_predicted else "")]
    bounded = [(panel.x(p.devices), p.value.bounds) for p in points]
    intervals = [(x, panel.y(b[0]), panel.y(b[1])) for x, b in bounded if b is not None]
    if series.is_predicted and len(intervals) > 1:
        upper = [(x, high) for x, _, high in intervals]
        parts.append(band(upper, [(x, low) for x, low, _ in intervals]))
    else:
        parts += [error_bar(x, low, high) for x, low, high in intervals]
    for point, (x, y) in zip(points, positions, strict=True):
        tip = f"{series.label}\n{point.devices:,}: {ranged_text(point.value, info.unit)}"
        parts.append(marker(x, y, number, tip))
    return group(*parts, class_=series_colour(number))


def efficiency_table(series: Sequence[ScalingSeries], unit: str, device: str = "device") -> Table:
    """A row per system and a column per number of devices: speed-up and efficiency.

    The base of a system is its smallest number of devices. Speed-up is relative to the base: 16
    devices with a base of 4 can reach 4.
    """
    counts = sorted({point.devices for one in series for point in one.drawable})
    bases = [min((p.devices for p in one.drawable), default=0) for one in series]
    columns = [
        Column("system"),
        Column(f"base, {device}s", decimals=0),
        Column("base throughput", unit),
        *(
            Column(f"{count:,} {device}{'s' if count > 1 else ''}", align=Align.RIGHT)
            for count in counts
            if any(count > base for base in bases)
        ),
    ]
    shown = [count for count in counts if any(count > base for base in bases)]
    rows = [_efficiency_row(one, shown) for one in series]
    note = "Speed-up over the base; in brackets, efficiency against perfect scaling."
    return Table(tuple(columns), tuple(rows), "Speed-up and efficiency", note)


def _efficiency_row(one: ScalingSeries, counts: Sequence[int]) -> tuple[Cell, ...]:
    points = {point.devices: point.value for point in one.drawable}
    if not points:
        return (one.label, None, None, *(MISSING for _ in counts))
    base = min(points)
    cells: list[Cell] = [one.label, base, points[base]]
    for count in counts:
        if count not in points or points[base].value <= 0:
            cells.append(MISSING)
            continue
        speed_up = points[count].value / points[base].value
        cells.append(f"{short_number(speed_up)} ({percent(speed_up * base / count)})")
    return tuple(cells)
