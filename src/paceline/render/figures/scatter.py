"""Predicted against measured values, with the line of equality."""

from dataclasses import dataclass

from paceline.render.number_format import percent, short_number
from paceline.render.svg.axis import log_axis
from paceline.render.svg.colours import series_colour
from paceline.render.svg.element import document, group, text
from paceline.render.svg.legend import LegendEntry, Symbol
from paceline.render.svg.marks import band, marker, polyline
from paceline.render.svg.panel import Panel, xy_panel
from paceline.render.svg.ticks import finite


@dataclass(frozen=True, slots=True)
class ScatterPoint:
    """The measured and the predicted value of one case."""

    measured: float
    predicted: float
    name: str = ""

    @property
    def is_drawable(self) -> bool:
        """Whether both are positive and finite."""
        return len([v for v in finite([self.measured, self.predicted]) if v > 0]) == 2


@dataclass(frozen=True)
class ScatterGroup:
    """Cases that share a source, a framework or a machine."""

    label: str
    points: tuple[ScatterPoint, ...]


@dataclass(frozen=True)
class ScatterInfo:
    """Groups of cases of one quantity; ``band`` is the relative error of the shaded strip."""

    groups: tuple[ScatterGroup, ...]
    quantity: str = "throughput (samples/s)"
    band: float = 0.1


def draw(info: ScatterInfo, width: float, height: float) -> str:
    cases = [p for group_ in info.groups for p in group_.points if p.is_drawable]
    values = [value for case in cases for value in (case.measured, case.predicted)]
    ticks = 7 if width > 560 else 5
    x = log_axis(f"measured {info.quantity}", values, most_ticks=ticks)
    y = log_axis(f"predicted {info.quantity}", values)
    entries = [
        LegendEntry(g.label, series_colour(number), Symbol.POINT, number)
        for number, g in enumerate(info.groups)
    ]
    agree = LegendEntry(f"equal, shaded ± {percent(info.band)}", "neutral", Symbol.DASHES)
    panel = xy_panel(width, height, x, y, [*entries, agree])
    parts = [_identity(panel, info.band), *(_group(panel, info, n) for n in range(len(entries)))]
    if not cases:
        middle = (panel.left + panel.right) / 2
        parts.append(text("no cases", middle, panel.top + 40, class_="label", anchor="middle"))
    description = f"{len(cases)} cases of predicted against measured {info.quantity}."
    return document(width, height, "Predicted against measured", description, panel.markup, *parts)


def _identity(panel: Panel, share: float) -> str:
    """The line of agreement, and around it the strip of errors up to ``share``."""
    low, high = panel.x.low, panel.x.high
    ends = [low * (high / low) ** (step / 24) for step in range(25)]
    line = [(panel.x(value), panel.y(value)) for value in (low, high)]
    upper = [(panel.x(value), panel.y(value * (1 + share))) for value in ends]
    lower = [(panel.x(value), panel.y(value * (1 - share))) for value in ends]
    return group(band(upper, lower), polyline(line, "dashes"), class_="neutral identity")


def _group(panel: Panel, info: ScatterInfo, number: int) -> str:
    cases = info.groups[number]
    marks = [
        marker(panel.x(point.measured), panel.y(point.predicted), number, _tip(cases, point))
        for point in cases.points
        if point.is_drawable
    ]
    return group(*marks, class_=f"{series_colour(number)} cloud")


def _tip(cases: ScatterGroup, point: ScatterPoint) -> str:
    error = point.predicted / point.measured - 1
    name = " · ".join(filter(None, (cases.label, point.name)))
    measured, predicted = short_number(point.measured), short_number(point.predicted)
    return f"{name}\nmeasured {measured}, predicted {predicted} ({error * 100:+.1f} %)"
