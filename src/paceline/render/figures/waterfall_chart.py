"""The waterfall from an ideal step to the real one."""

from dataclasses import dataclass

from paceline.render.number_format import common_decimals, format_number
from paceline.render.safe_text import printable
from paceline.render.svg.axis import length_axis
from paceline.render.svg.element import document, group, line, text
from paceline.render.svg.marks import bar
from paceline.render.svg.row_layout import Rows, rows
from paceline.render.svg.text_metrics import fitted, text_width
from paceline.step.waterfall import ItemKind, Waterfall, WaterfallItem
from paceline.units import seconds_unit

_BAR = 22.0
_THINNEST = 1.5
_NOTE = 11.0
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
    axis = length_axis(f"{info.title} ({unit})", [edge * factor for s in spans for edge in s])
    ends = [_value(item, factor, decimals) for item in items]
    labels = [item.label for item in items]
    layout = rows(labels, width, top=4, bar_height=_BAR, gap=12, ends=ends)
    scale = layout.scale(axis)
    parts: list[str] = []
    for number, (item, (start, end)) in enumerate(zip(items, spans, strict=True)):
        top = layout.bar_top(number)
        left, right = sorted((scale(start * factor), scale(end * factor)))
        if number + 1 < len(items):
            x = scale(end * factor)
            below = layout.bar_top(number + 1)
            parts.append(line(x, top + _BAR, x, below, class_="connector"))
        tip = "\n".join(filter(None, (f"{item.label}: {ends[number]} {unit}", item.note)))
        mark = bar(left, top, max(right - left, _THINNEST), _BAR, tip=tip)
        parts.append(group(mark, class_=_COLOURS[item.kind]))
        parts.append(text(ends[number], right + 8, top + _BAR / 2 + 4, class_="value"))
        parts.append(_note(item, left, top, layout))
    description = "; ".join(f"{i.label} {e} {unit}" for i, e in zip(items, ends, strict=True))
    return document(width, layout.height, info.title, description, layout.backdrop(axis), *parts)


def _value(item: WaterfallItem, factor: float, decimals: int) -> str:
    return format_number(item.seconds * factor, decimals, signed=item.kind is not ItemKind.IDEAL)


def _note(item: WaterfallItem, bar_left: float, top: float, layout: Rows) -> str:
    """The note in the empty space left of the bar; omitted if there is too little."""
    room = bar_left - layout.left - 20
    note = printable(item.note)
    if not note or room < min(text_width(note, _NOTE), 120.0):
        return ""
    shown = fitted(note, room, _NOTE)
    return text(shown, bar_left - 10, top + _BAR / 2 + 4, class_="small", anchor="end")
