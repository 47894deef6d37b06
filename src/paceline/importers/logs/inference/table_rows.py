"""Rows of printed tables, as text that repeats the heading in front of each cell."""

import re
from collections.abc import Callable

_CELLS = re.compile(r"\s*\|\s*|\t+|\s{2,}")
_RULE = re.compile(r"[-+=| ─━┼]+")
LONGEST_HEADING = 24
FEWEST_CELLS = 3


class TableRows:
    """The latest heading of a log, and the rows under it: ``| 12 | 0.53 | 1.9 s |``.

    A line is a heading if it has several short cells without digits, one of which ``names_steps``.
    """

    def __init__(self, names_steps: Callable[[str], bool]) -> None:
        self._names_steps = names_steps
        self._heading: list[str] = []

    def labelled(self, text: str) -> str:
        """A row as ``step: 12; loss: 0.53; time: 1.9 s``; any other line unchanged."""
        if "|" not in text and "\t" not in text and "  " not in text:
            return text
        cells = _CELLS.split(text.strip(" |\t"))
        if len(cells) < FEWEST_CELLS or _RULE.fullmatch(text):
            return text
        if not any(character.isdigit() for character in text):
            short = all(0 < len(cell) <= LONGEST_HEADING for cell in cells)
            if short and any(self._names_steps(cell.lower()) for cell in cells):
                self._heading = cells
            return text
        if len(cells) != len(self._heading) or not all(_is_value(cell) for cell in cells):
            return text
        return "; ".join(f"{name}: {cell}" for name, cell in zip(self._heading, cells, strict=True))


def _is_value(cell: str) -> bool:
    """Whether a cell is a number with or without a unit, or absent."""
    return not cell or cell[0] in "0123456789-+." or cell.lower() in ("nan", "none", "n/a")
