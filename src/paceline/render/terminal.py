"""Tables for the terminal; colour only repeats information of the text."""

import errno
import shutil
import textwrap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from paceline.render.safe_text import NO_ROOM, display_width, pad, printable, wrap
from paceline.render.table import FIGURE_SPACE, Align, Table

if TYPE_CHECKING:
    from rich.console import Console

DEFAULT_COLUMNS = 100
"""Columns of text that is not printed on a terminal."""
LEAST_COLUMNS, MOST_COLUMNS = 40, 200
_GAP = "  "
_INDENT = " " * 4
_NARROWEST_TEXT = 24
"""Columns of text below which a wrapped column moves to the next line of its row."""
_EIGHTHS = ("", "▏", "▎", "▍", "▌", "▋", "▊", "▉")
_VERDICTS = {
    r"(?<=, )fits\b|(?<=  )(faster\b|yes(?=  |$))": "green",
    r"(?<=  )(slower\b|no(?=  |$))": "yellow",
    rf"{NO_ROOM}|\bfailed\b": "bold red",
}
"""Colours of verdicts in cells and lines of results, which repeat what their words say."""


def terminal_width() -> int:
    """Columns of the terminal, from 40 to 200; 100 without a terminal."""
    columns = shutil.get_terminal_size((DEFAULT_COLUMNS, 24)).columns
    return min(MOST_COLUMNS, max(LEAST_COLUMNS, columns))


def prose(line: str, indent: str = "", width: int | None = None) -> list[str]:
    """``line`` broken between words at the terminal's width; further lines begin with ``indent``.

    Words, such as paths and names, are never cut.
    """
    return textwrap.wrap(
        line,
        width or terminal_width(),
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def table_lines(table: Table, width: int | None = None) -> list[str]:
    """``table`` as lines of at most ``width`` columns (by default the terminal's).

    Cells of text are wrapped between words; names and numbers are never cut. If the columns are
    wider than ``width`` even so, each row continues on an indented line.
    """
    return [line for line, _ in _styled_lines(table, width or terminal_width())]


def _styled_lines(table: Table, width: int) -> Iterator[tuple[str, str]]:
    """The lines of a table; its title is bold, its headings have no verdicts to colour."""
    blocks = [_Block.of(table, index) for index in range(len(table.columns))]
    parts = _parts(_wrapped(blocks, width), width, table.keys)
    for line in prose(printable(table.title), width=width):
        yield line, "bold"
    for line in _row_lines(parts, [block.heading for block in blocks], at_bottom=True):
        yield line, "none"
    for row in range(len(table.rows)):
        for line in _row_lines(parts, [block.cells[row] for block in blocks]):
            yield line, ""
    for line in prose(printable(table.note), width=width):
        yield line, ""


def print_table(table: Table, console: "Console | None" = None) -> None:
    """Print ``table`` with a bold title and coloured verdicts."""
    print_lines(_styled_lines(table, terminal_width()), console)


@dataclass(frozen=True)
class _Block:
    """One column of a table as text: its width, and the lines of its heading and cells."""

    index: int
    heading: str
    cells: list[str]
    width: int
    right: bool

    @classmethod
    def of(cls, table: Table, index: int) -> "_Block":
        cells = [text.replace(FIGURE_SPACE, " ") for text in table.texts_of(index)]
        heading = table.columns[index].heading
        width = max(map(display_width, [*heading.split(), *cells, "-"]))
        return cls(index, heading, cells, width, table.align_of(index) is Align.RIGHT)

    @property
    def narrowest(self) -> int:
        """Columns below which a word is cut or text becomes a narrow strip."""
        if self.right:
            return self.width
        words = [word for text in (self.heading, *self.cells) for word in text.split()]
        return min(self.width, max([_NARROWEST_TEXT, *map(display_width, words)]))

    def lines(self, text: str) -> list[str]:
        fits = display_width(text) <= self.width
        return [text] if fits and text != self.heading else wrap(text, self.width)


def _wrapped(blocks: list[_Block], width: int) -> list[_Block]:
    """``blocks`` with the widest columns of text wrapped until all fit on a line, if they can."""
    wrapped = list(blocks)
    excess = sum(block.width for block in wrapped) + len(_GAP) * (len(blocks) - 1) - width
    for block in sorted(wrapped, key=lambda block: block.narrowest - block.width):
        taken = min(max(0, excess), block.width - block.narrowest)
        wrapped[block.index] = replace(block, width=max(1, block.width - taken))
        excess -= taken
    return wrapped if excess <= 0 else list(blocks)


def _parts(blocks: list[_Block], width: int, keys: int) -> list[list[_Block]]:
    """The columns on each line of a row; lines after the first are indented."""
    parts: list[list[_Block]] = [[]]
    used = 0
    for block in blocks:
        if parts[-1][keys - 1 :] and used + block.narrowest > width:
            parts.append([])
            used = len(_INDENT)
        room = max(block.narrowest, width - used)
        parts[-1].append(replace(block, width=min(block.width, room)))
        used += parts[-1][-1].width + len(_GAP)
    return parts


def _row_lines(
    parts: list[list[_Block]], texts: list[str], *, at_bottom: bool = False
) -> list[str]:
    """One row of a table, or its headings, which stand ``at_bottom`` of their lines."""
    lines: list[str] = []
    for number, part in enumerate(parts):
        columns = [block.lines(texts[block.index]) for block in part]
        height = max(map(len, columns), default=0)
        for line in range(height):
            cells = []
            for block, own in zip(part, columns, strict=True):
                at = line - (height - len(own)) if at_bottom else line
                text = own[at] if 0 <= at < len(own) else ""
                cells.append(pad(text, block.width, right=block.right))
            joined = _GAP.join(cells).rstrip()
            if joined or number == 0:
                lines.append(_INDENT * (number > 0) + joined)
    return lines


def bar_text(length: float) -> str:
    """A bar of ``length`` columns to an eighth of one; negative lengths are drawn light."""
    if length < 0:
        return "░" * round(-length)
    full, eighths = divmod(round(length * 8), 8)
    return "█" * full + _EIGHTHS[eighths]


def print_lines(lines: Iterable[tuple[str, str]], console: "Console | None") -> None:
    """Print lines with coloured verdicts.

    A style colours the bars of a line, or the whole line if it has none.
    """
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
        for verdict, colour in _VERDICTS.items() if style != "none" else ():
            text.highlight_regex(verdict, colour)
        console.print(text, soft_wrap=True)
