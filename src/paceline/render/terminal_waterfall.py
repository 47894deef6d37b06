"""Waterfalls for the terminal: from an ideal step to a real one, a bar for each cause."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from paceline.render.number_format import common_decimals, format_number
from paceline.render.safe_text import display_width, pad, printable, shorten, wrap
from paceline.render.terminal import bar_text, print_lines, terminal_width
from paceline.step.waterfall import ItemKind, Waterfall, WaterfallItem
from paceline.units import seconds_unit

if TYPE_CHECKING:
    from rich.console import Console

_LONGEST_BAR = 30
_NARROWEST_NOTE = 24
_VALUE_AND_BAR = 24
"""Columns for value and bar; a label may take the others before it is cut."""
_BAR_STYLE = {ItemKind.IDEAL: "blue", ItemKind.CAUSE: "yellow", ItemKind.UNEXPLAINED: "dim"}


def waterfall_heading(waterfall: Waterfall, subject: str, real: str = "measured") -> str:
    """``Where the second process goes (ms per step, 683 measured, 625 ideal)``."""
    factor, unit = seconds_unit(waterfall.total_seconds)
    decimals = common_decimals([waterfall.total_seconds * factor])
    total, ideal = (
        format_number(seconds * factor, decimals)
        for seconds in (waterfall.total_seconds, waterfall.ideal_seconds)
    )
    return f"{printable(subject)} ({unit} per step, {total} {real}, {ideal} ideal)"


def waterfall_lines(items: Sequence[WaterfallItem], width: int | None = None) -> list[str]:
    """One line or more per item: label, time, bar and note, at most ``width`` columns wide.

    Without ``width`` they are as wide as the terminal.

    Times are in the unit of `waterfall_heading`. Bars share one scale; negative ones are light.
    Long notes continue below.
    """
    return [line for block in _waterfall_blocks(items, width or terminal_width()) for line in block]


def print_waterfall(
    waterfall: Waterfall, subject: str, real: str = "measured", console: "Console | None" = None
) -> None:
    """Print heading and bars."""
    lines = [(f" {waterfall_heading(waterfall, subject, real)}", "bold")]
    blocks = _waterfall_blocks(waterfall.items, terminal_width())
    for item, block in zip(waterfall.items, blocks, strict=True):
        lines += [(line, _BAR_STYLE[item.kind]) for line in block]
    print_lines(lines, console)


@dataclass(frozen=True)
class WaterfallChart:
    """A waterfall as a part of a result; the terminal prints it in colour."""

    waterfall: Waterfall
    subject: str
    real: str = "measured"

    def __str__(self) -> str:
        heading = f" {waterfall_heading(self.waterfall, self.subject, self.real)}"
        return "\n".join([heading, *waterfall_lines(self.waterfall.items)])

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


def _waterfall_blocks(items: Sequence[WaterfallItem], width: int) -> list[list[str]]:
    if not items:
        return []
    values = _waterfall_values(items)
    label_width = min(
        max(display_width(printable(item.label)) for item in items) + 4,
        max(width * 2 // 5, width - _VALUE_AND_BAR),
    )
    bar_column = 2 + label_width + 1 + max(map(len, values)) + 2
    longest_bar = max(0, min(_LONGEST_BAR, width - bar_column))
    largest = max(abs(item.seconds) for item in items) or 1.0
    bars = [bar_text(item.seconds / largest * longest_bar) for item in items]
    noted = [len(bar) for item, bar in zip(items, bars, strict=True) if item.note]
    note_column = bar_column + max([12, *(size + 2 for size in noted)])
    blocks: list[list[str]] = []
    for item, value, bar in zip(items, values, bars, strict=True):
        label = shorten(printable(item.label), label_width - 2)
        line = f"  {pad(label + ' ', label_width, fill='.')} {value}  {bar}".rstrip()
        blocks.append(_with_note(line, printable(item.note), note_column, width))
    return blocks


def _waterfall_values(items: Sequence[WaterfallItem]) -> list[str]:
    """Times in one unit, signs in one column: `` 625``, ``+ 41``, ``-  3``."""
    total = sum(item.seconds for item in items)
    factor, _ = seconds_unit(total)
    decimals = common_decimals([total * factor])
    texts = [format_number(abs(item.seconds) * factor, decimals) for item in items]
    digits = max(map(len, texts))
    return [
        f"{_sign(item, text)}{pad(text, digits, right=True)}"
        for item, text in zip(items, texts, strict=True)
    ]


def _sign(item: WaterfallItem, text: str) -> str:
    if item.kind is ItemKind.IDEAL or not text.strip("0.,"):
        return " "
    return "+" if item.seconds > 0 else "-"


def _with_note(line: str, note: str, column: int, width: int) -> list[str]:
    """``line`` with ``note`` from ``column`` on, or below it if there is too little space."""
    if not note.strip():
        return [line]
    if width - column < _NARROWEST_NOTE:
        return [line, *(f"    {part}" for part in wrap(note, max(width - 4, 1)))]
    first, *rest = wrap(note, width - column)
    return [pad(line, column) + first, *(" " * column + part for part in rest)]
