"""The waterfall from an ideal step to the real one."""

from collections.abc import Sequence
from dataclasses import dataclass

from paceline.render.number_format import common_decimals, format_number
from paceline.render.safe_text import printable
from paceline.render.svg.axis import Axis, length_axis, window_axis
from paceline.render.svg.element import document, group, line, text
from paceline.render.svg.marks import bar
from paceline.render.svg.row_layout import Rows, rows
from paceline.render.svg.text_metrics import fitted, text_width
from paceline.step.waterfall import ItemKind, Waterfall, WaterfallItem
from paceline.units import seconds_unit

_BAR = 22.0
_THINNEST = 1.5
_NOTE = 11.0
_BREAKS = (9.0, 14.0)
"""Pixels from the left edge of the marks of a bar that begins before the axis."""
_LEAST_LOSSES = 1e-3
"""Share of the step below which losses are too small to be magnified."""
_MOSTLY = 0.6
"""Share of the step above which the ideal step is cut, so that the losses are readable."""
_COLOURS = {ItemKind.IDEAL: "c1", ItemKind.CAUSE: "c2", ItemKind.UNEXPLAINED: "neutral"}


@dataclass(frozen=True)
class WaterfallInfo:
    """A waterfall and the label of its last bar, the real step."""

    waterfall: Waterfall
    real_label: str = "measured step"
    title: str = "step time"


def draw(info: WaterfallInfo, width: float) -> str:
    total = info.waterfall.total_seconds
    items = [*info.waterfall.items, WaterfallItem(info.real_label, total, ItemKind.IDEAL)]
    spans = [*info.waterfall.spans, (0.0, total)]
    factor, unit = seconds_unit(max((abs(edge) for span in spans for edge in span), default=0.0))
    decimals = common_decimals([total * factor])
    axis = _axis(f"{info.title} ({unit})", [edge * factor for s in spans for edge in s])
    ends = [_value(item, factor, decimals) for item in items]
    labels = [item.label for item in items]
    layout = rows(labels, width, top=4, bar_height=_BAR, gap=12, ends=ends)
    scale = layout.scale(axis)
    parts: list[str] = []
    for number, (item, (start, end)) in enumerate(zip(items, spans, strict=True)):
        top = layout.bar_top(number)
        cut = min(start, end) * factor < axis.low
        left, right = sorted(scale(max(edge * factor, axis.low)) for edge in (start, end))
        if number + 1 < len(items):
            x = scale(end * factor)
            below = layout.bar_top(number + 1)
            parts.append(line(x, top + _BAR, x, below, class_="connector"))
        tip = "\n".join(filter(None, (f"{item.label}: {ends[number]} {unit}", item.note)))
        mark = bar(left, top, max(right - left, _THINNEST), _BAR, tip=tip)
        parts.append(group(mark, class_=_COLOURS[item.kind]))
        if cut:
            parts += [_break(left + x, top) for x in _BREAKS]
        parts.append(text(ends[number], right + 8, top + _BAR / 2 + 4, class_="value"))
        parts.append(_note(item, left, right + 22 + text_width(ends[number]), top, layout))
    description = "; ".join(f"{i.label} {e} {unit}" for i, e in zip(items, ends, strict=True))
    return document(width, layout.height, info.title, description, layout.backdrop(axis), *parts)


def _axis(title: str, edges: Sequence[float]) -> Axis:
    """From zero, or from below the losses if they are a small part of the step."""
    losses = [edge for edge in edges if edge > 0]
    low, high = min(losses, default=0.0), max([*losses, 0.0])
    if low < _MOSTLY * high or high - low < _LEAST_LOSSES * high:
        return length_axis(title, edges)
    return window_axis(f"{title}, axis does not begin at 0", low - 0.3 * (high - low), high)


def _break(x: float, top: float) -> str:
    """A slanted gap in a bar that begins before the axis."""
    return line(x - 3, top + _BAR + 2, x + 3, top - 2, class_="break")


def _value(item: WaterfallItem, factor: float, decimals: int) -> str:
    return format_number(item.seconds * factor, decimals, signed=item.kind is not ItemKind.IDEAL)


def _note(
    item: WaterfallItem, bar_left: float, value_right: float, top: float, layout: Rows
) -> str:
    """The note in the larger space left or right of the bar; omitted if there is too little."""
    before, after = bar_left - layout.left - 20, layout.width - value_right - 8
    room, note = max(before, after), printable(item.note)
    if not note or room < min(text_width(note, _NOTE), 120.0):
        return ""
    shown, y = fitted(note, room, _NOTE), top + _BAR / 2 + 4
    if after > before:
        return text(shown, value_right, y, class_="small")
    return text(shown, bar_left - 10, y, class_="small", anchor="end")
