"""Tables and waterfalls for the terminal: plain lines first, colour only as a second sign."""

import errno
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from paceline.analyse.waterfall import ItemKind, Waterfall, WaterfallItem
from paceline.report.numbers import common_decimals, format_number
from paceline.report.table import FIGURE_SPACE, Align, Table
from paceline.report.text import display_width, pad, printable, shorten, wrap
from paceline.units import seconds_unit

if TYPE_CHECKING:
    from rich.console import Console

MOST_COLUMNS = 100
_GAP = "  "
_NARROWEST_TEXT = 10
_LONGEST_BAR = 30
_NARROWEST_NOTE = 24
_EIGHTHS = ("", "▏", "▎", "▍", "▌", "▋", "▊", "▉")
_BAR_STYLE = {ItemKind.IDEAL: "blue", ItemKind.CAUSE: "yellow", ItemKind.UNEXPLAINED: "dim"}


def terminal_width() -> int:
    """Columns to print to: those of the terminal, at most 100."""
    return min(MOST_COLUMNS, shutil.get_terminal_size((MOST_COLUMNS, 24)).columns)


def table_lines(table: Table, width: int = MOST_COLUMNS) -> list[str]:
    """``table`` as lines of at most ``width`` columns.

    Too wide a table first shortens its text columns, then goes on below with the columns that
    are left, each part starting with the first column again. No digit is ever cut.
    """
    blocks = [_Block.of(table, index) for index in range(len(table.columns))]
    lines = [printable(table.title)] if table.title else []
    for number, part in enumerate(_parts(_shrunk(blocks, width), width)):
        lines += [""] if number else []
        height = max(len(block.heading) for block in part)
        cells = zip(*(block.lines(height) for block in part), strict=True)
        lines += [_GAP.join(row).rstrip() for row in cells]
    return lines + wrap(printable(table.note), width)


def print_table(table: Table, console: "Console | None" = None) -> None:
    """Print ``table``; its title is bold where the terminal can."""
    lines = table_lines(table, terminal_width())
    styles = ["bold" if table.title else "", *[""] * len(lines)]
    _print_lines(zip(lines, styles, strict=False), console)


@dataclass(frozen=True)
class _Block:
    """One column of a table on its way to the terminal."""

    heading: list[str]
    cells: list[str]
    right: bool

    @classmethod
    def of(cls, table: Table, index: int) -> "_Block":
        cells = [text.replace(FIGURE_SPACE, " ") for text in table.texts_of(index)]
        words = table.columns[index].heading
        narrowest = max(map(display_width, [*words.split(), *cells, "-"]))
        return cls(wrap(words, narrowest), cells, table.align_of(index) is Align.RIGHT)

    @cached_property
    def width(self) -> int:
        return max(map(display_width, [*self.heading, *self.cells, ""]))

    def lines(self, heading_height: int) -> list[str]:
        above = [""] * (heading_height - len(self.heading))
        return [
            pad(text, self.width, right=self.right) for text in [*above, *self.heading, *self.cells]
        ]

    def shortened(self, width: int) -> "_Block":
        heading = [line for word in self.heading for line in wrap(word, width)]
        return _Block(heading, [shorten(cell, width) for cell in self.cells], self.right)


def _shrunk(blocks: list[_Block], width: int) -> list[_Block]:
    """``blocks`` with the widest text columns shortened until all fit, if that can be."""
    shrunk = list(blocks)
    excess = sum(block.width for block in blocks) + len(_GAP) * (len(blocks) - 1) - width
    by_width = sorted(range(len(blocks)), key=lambda index: -blocks[index].width)
    for index in (index for index in by_width if not blocks[index].right):
        if excess <= 0:
            break
        before = blocks[index].width
        if before > _NARROWEST_TEXT:
            shrunk[index] = blocks[index].shortened(max(_NARROWEST_TEXT, before - excess))
            excess -= before - shrunk[index].width
    return shrunk if excess <= 0 else [_narrowed(block, width // 2) for block in blocks]


def _narrowed(block: _Block, most: int) -> _Block:
    return block if block.right or block.width <= most else block.shortened(most)


def _parts(blocks: list[_Block], width: int) -> list[list[_Block]]:
    """``blocks`` in groups that each fit ``width``, each starting with the first block."""
    if not blocks:
        return []
    parts = [[blocks[0]]]
    used = blocks[0].width
    for block in blocks[1:]:
        if used + len(_GAP) + block.width > width and len(parts[-1]) > 1:
            parts.append([blocks[0]])
            used = blocks[0].width
        parts[-1].append(block)
        used += len(_GAP) + block.width
    return parts


def waterfall_heading(waterfall: Waterfall, subject: str, real: str = "measured") -> str:
    """``Where the second process goes (ms per step, 683 measured, 625 ideal)``."""
    factor, unit = seconds_unit(waterfall.total_seconds)
    decimals = common_decimals([waterfall.total_seconds * factor])
    total, ideal = (
        format_number(seconds * factor, decimals)
        for seconds in (waterfall.total_seconds, waterfall.ideal_seconds)
    )
    return f"{printable(subject)} ({unit} per step, {total} {real}, {ideal} ideal)"


def waterfall_lines(items: Sequence[WaterfallItem], width: int = MOST_COLUMNS) -> list[str]:
    """One line or more per item: label, time, bar and note, at most ``width`` columns wide.

    Times are in the unit that `waterfall_heading` names. Bars share one scale; what shortens
    the step is drawn light. Long notes go on below their beginning.
    """
    return [line for block in _waterfall_blocks(items, width) for line in block]


def print_waterfall(
    waterfall: Waterfall, subject: str, real: str = "measured", console: "Console | None" = None
) -> None:
    """Print heading and bars; the colour of a bar repeats what its label says."""
    lines = [(f" {waterfall_heading(waterfall, subject, real)}", "bold")]
    blocks = _waterfall_blocks(waterfall.items, terminal_width())
    for item, block in zip(waterfall.items, blocks, strict=True):
        lines += [(line, _BAR_STYLE[item.kind]) for line in block]
    _print_lines(lines, console)


def _waterfall_blocks(items: Sequence[WaterfallItem], width: int) -> list[list[str]]:
    """The lines of each item."""
    if not items:
        return []
    values = _waterfall_values(items)
    label_width = min(
        max(display_width(printable(item.label)) for item in items) + 4, width * 2 // 5
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


def bar_text(length: float) -> str:
    """A bar of ``length`` columns to an eighth of one; negative lengths are drawn light."""
    if length < 0:
        return "░" * round(-length)
    full, eighths = divmod(round(length * 8), 8)
    return "█" * full + _EIGHTHS[eighths]


def _with_note(line: str, note: str, column: int, width: int) -> list[str]:
    """``line`` with ``note`` from ``column`` on, or below it where no room is left."""
    if not note.strip():
        return [line]
    if width - column < _NARROWEST_NOTE:
        return [line, *(f"    {part}" for part in wrap(note, max(width - 4, 1)))]
    first, *rest = wrap(note, width - column)
    return [pad(line, column) + first, *(" " * column + part for part in rest)]


def _print_lines(lines: Iterable[tuple[str, str]], console: "Console | None") -> None:
    """Print lines; a style colours the bars of a line, or all of it where it has none."""
    from rich.console import Console
    from rich.text import Text

    class Piped(Console):
        def on_broken_pipe(self) -> None:
            """Leave it to the command line to end; Rich would exit with 1."""
            raise BrokenPipeError(errno.EPIPE, "nobody reads any more")

    console = console or Piped(highlight=False, width=terminal_width())
    for line, style in lines:
        text = Text(line)
        if style and not text.highlight_regex(r"[█▏▎▍▌▋▊▉░]+", style):
            text.stylize(style)
        console.print(text, soft_wrap=True)
