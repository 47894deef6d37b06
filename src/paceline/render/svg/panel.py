"""The plot area: edges, grid, axes and the scales of both directions."""

from collections.abc import Sequence
from dataclasses import dataclass

from paceline.render.svg.axis import Axis, Tick
from paceline.render.svg.element import group, line, text
from paceline.render.svg.legend import LegendEntry, legend
from paceline.render.svg.scale import Scale
from paceline.render.svg.text_metrics import text_width

_TITLE = 22.0
_BELOW = 44.0
_RIGHT = 14.0


@dataclass(frozen=True)
class Panel:
    """Edges in pixels, scales, and the markup behind the marks."""

    left: float
    right: float
    top: float
    bottom: float
    x: Scale
    y: Scale
    markup: str


def xy_panel(
    width: float, height: float, x: Axis, y: Axis, entries: Sequence[LegendEntry] = ()
) -> Panel:
    """A plot of two axes, with its legend above it, that fills ``width`` by ``height``."""
    left, right, bottom = y.label_width + 12, width - _RIGHT, height - _BELOW
    key, key_height = legend(entries, 0, width, 0)
    top = key_height + _TITLE + 8
    bottom = max(bottom, top + 40)
    x_scale, y_scale = x.scale(left, right), y.scale(bottom, top)
    markup = (
        key
        + text(y.title, 0, key_height + 16, class_="axis-title")
        + horizontal_grid(y, y_scale, left, right)
        + x_axis(x, x_scale, left, right, bottom)
    )
    return Panel(left, right, top, bottom, x_scale, y_scale, markup)


def horizontal_grid(axis: Axis, scale: Scale, left: float, right: float) -> str:
    """Lines across the plot at the ticks of its vertical axis, labelled at the left."""
    parts: list[str] = []
    for tick in axis.ticks:
        y = scale(tick.value)
        parts.append(line(left, y, right, y, class_="grid"))
        parts.append(text(tick.label, left - 8, y + 4, class_="tick", anchor="end"))
    return group(*parts, class_="axis")


def x_axis(axis: Axis, scale: Scale, left: float, right: float, bottom: float) -> str:
    """The base line with ticks, labels and the title below it."""
    parts = [line(left, bottom, right, bottom, class_="base")]
    for tick in axis.ticks:
        x = scale(tick.value)
        parts.append(line(x, bottom, x, bottom + 4, class_="base"))
        parts.append(_below(tick, x, right + _RIGHT, bottom + 18))
    title = text(axis.title, right, bottom + 38, class_="axis-title", anchor="end")
    return group(*parts, title, class_="axis")


def vertical_grid(axis: Axis, scale: Scale, top: float, bottom: float) -> str:
    """Lines down the plot at the ticks of its horizontal axis, labelled below."""
    parts: list[str] = []
    for tick in axis.ticks:
        x = scale(tick.value)
        parts.append(line(x, top, x, bottom, class_="grid"))
        parts.append(_below(tick, x, scale.end + _RIGHT, bottom + 16))
    return group(*parts, class_="axis")


def _below(tick: Tick, x: float, limit: float, baseline: float) -> str:
    """A label centred on its tick, or as near to it as the edge of the drawing allows."""
    centre = min(x, limit - text_width(tick.label) / 2)
    return text(tick.label, centre, baseline, class_="tick", anchor="middle")
