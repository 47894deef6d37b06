"""The legend of colours, markers and dashes above the plot."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from paceline.render.safe_text import printable
from paceline.render.svg.element import element, group, line, text
from paceline.render.svg.marks import marker
from paceline.render.svg.text_metrics import fitted, text_width

_ROW = 20.0
_SYMBOL = 18.0
_GAP = 18.0


class Symbol(StrEnum):
    """Symbol of a legend entry."""

    BOX = "box"
    LINE = "line"
    DASHES = "dashes"
    DOTS = "dots"
    STRIP = "strip"
    POINT = "point"
    LINE_AND_POINT = "line-and-point"


@dataclass(frozen=True, slots=True)
class LegendEntry:
    """A label with the colour class and symbol it explains; ``shape`` numbers the marker."""

    label: str
    colour: str
    symbol: Symbol = Symbol.BOX
    shape: int = 0


def legend(
    entries: Sequence[LegendEntry], left: float, right: float, top: float
) -> tuple[str, float]:
    """The legend as an element, and the height it takes; rows wrap at ``right``."""
    if not entries:
        return "", 0.0
    parts: list[str] = []
    x, y = left, top
    for entry in entries:
        label = fitted(printable(entry.label), right - left - _SYMBOL - 6)
        width = _SYMBOL + 6 + text_width(label)
        if x > left and x + width > right:
            x, y = left, y + _ROW
        middle = y + _ROW / 2 - 1
        parts.append(group(*_symbol(entry, x, middle), class_=entry.colour))
        parts.append(text(label, x + _SYMBOL + 6, middle + 4, class_="label"))
        x += width + _GAP
    return group(*parts, class_="legend"), y + _ROW - top


def _symbol(entry: LegendEntry, x: float, y: float) -> list[str]:
    if entry.symbol is Symbol.BOX:
        return [element("rect", x=x + 3, y=y - 6, width=12, height=12, rx=2, class_="fill")]
    if entry.symbol is Symbol.STRIP:
        return [element("rect", x=x + 1, y=y - 2.5, width=16, height=5, class_="fill")]
    parts: list[str] = []
    if entry.symbol is not Symbol.POINT:
        broken = f" {entry.symbol}" if entry.symbol in (Symbol.DASHES, Symbol.DOTS) else ""
        parts.append(line(x, y, x + _SYMBOL, y, class_=f"stroke{broken}"))
    if entry.symbol in (Symbol.POINT, Symbol.LINE_AND_POINT):
        parts.append(marker(x + _SYMBOL / 2, y, entry.shape))
    return parts
