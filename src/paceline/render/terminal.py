"""Tables for the terminal; colour only repeats information of the text."""

import errno
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from paceline.render.safe_text import NO_ROOM, display_width, pad, printable, shorten, wrap
from paceline.render.table import FIGURE_SPACE, Align, Table

if TYPE_CHECKING:
    from rich.console import Console

MOST_COLUMNS = 100
_GAP = "  "
_NARROWEST_TEXT = 10
_EIGHTHS = ("", "▏", "▎", "▍", "▌", "▋", "▊", "▉")


def terminal_width() -> int:
    """Columns of the terminal, at most 100."""
    return min(MOST_COLUMNS, shutil.get_terminal_size((MOST_COLUMNS, 24)).columns)


def table_lines(table: Table, width: int = MOST_COLUMNS) -> list[str]:
    """``table`` as lines of at most ``width`` columns.

    A wide table first shortens its text columns, then continues below with the remaining columns,
    each part beginning with the key columns (`Table.keys`). Numbers are never truncated.
    """
    blocks = [_Block.of(table, index) for index in range(len(table.columns))]
    lines = [printable(table.title)] if table.title else []
    for number, part in enumerate(_parts(_shrunk(blocks, width), width, table.keys)):
        lines += [""] if number else []
        height = max(len(block.heading) for block in part)
        cells = zip(*(block.lines(height) for block in part), strict=True)
        lines += [_GAP.join(row).rstrip() for row in cells]
    return lines + wrap(printable(table.note), width)


def print_table(table: Table, console: "Console | None" = None) -> None:
    """Print ``table`` with a bold title; rows of plans that do not fit are red."""
    lines = table_lines(table, terminal_width())
    styles = ["bold red" if NO_ROOM in line else "" for line in lines]
    if table.title:
        styles[0] = "bold"
    print_lines(zip(lines, styles, strict=True), console)


@dataclass(frozen=True)
class _Block:
    """One column of a table as text."""

    heading: list[str]
    cells: list[str]
    right: bool

    @classmethod
    def of(cls, table: Table, index: int) -> "_Block":
        cells = [text.replace(FIGURE_SPACE, " ") for text in table.texts_of(index)]
        heading = table.columns[index].heading
        narrowest = max(map(display_width, [*heading.split(), *cells, "-"]))
        return cls(wrap(heading, narrowest), cells, table.align_of(index) is Align.RIGHT)

    @cached_property
    def width(self) -> int:
        return max(map(display_width, [*self.heading, *self.cells, ""]))

    def lines(self, heading_height: int) -> list[str]:
        above = [""] * (heading_height - len(self.heading))
        return [
            pad(text, self.width, right=self.right) for text in [*above, *self.heading, *self.cells]
        ]

    def shortened(self, width: int) -> "_Block":
        heading = [line for part in self.heading for line in wrap(part, width)]
        return _Block(heading, [shorten(cell, width) for cell in self.cells], self.right)


def _shrunk(blocks: list[_Block], width: int) -> list[_Block]:
    """``blocks`` with the widest text columns shortened until all fit, if possible."""
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


def _parts(blocks: list[_Block], width: int, keys: int) -> list[list[_Block]]:
    """``blocks`` in groups that each fit ``width``, each starting with the first ``keys``."""
    if not blocks:
        return []
    first = blocks[:keys]
    least = sum(block.width for block in first) + len(_GAP) * (len(first) - 1)
    parts, used = [list(first)], least
    for block in blocks[keys:]:
        if used + len(_GAP) + block.width > width and len(parts[-1]) > len(first):
            parts.append(list(first))
            used = least
        parts[-1].append(block)
        used += len(_GAP) + block.width
    return parts


def bar_text(length: float) -> str:
    """A bar of ``length`` columns to an eighth of one; negative lengths are drawn light."""
    if length < 0:
        return "░" * round(-length)
    full, eighths = divmod(round(length * 8), 8)
    return "█" * full + _EIGHTHS[eighths]


def print_lines(lines: Iterable[tuple[str, str]], console: "Console | None") -> None:
    """Print lines; a style colours the bars of a line, or the whole line if it has none."""
    from rich.console import Console
    from rich.text import Text

    class Piped(Console):
        def on_broken_pipe(self) -> None:
            """Let the command line end the process; Rich would exit with 1."""
            raise BrokenPipeError(errno.EPIPE, "standard output is closed")

    console = console or Piped(highlight=False, width=terminal_width())
    for line, style in lines:
        text = Text(line)
        if style and not text.highlight_regex(r"[█▏▎▍▌▋▊▉░]+", style):
            text.stylize(style)
        console.print(text, soft_wrap=True)
