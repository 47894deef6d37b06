"""Tables, independent of their output format."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias, TypeVar

from paceline.errors import InputError
from paceline.render.number_format import Ranged, format_number, interval_decimals, interval_text
from paceline.render.safe_text import MISSING, pad, printable

Cell: TypeAlias = str | float | Ranged | None
"""Text, a number, a number with its interval, or None if unknown."""

T = TypeVar("T")

FIGURE_SPACE = "\u2007"
"""A space as wide as a digit, which pads numbers in proportional fonts."""


class Align(StrEnum):
    """Alignment of the cells of a column."""

    LEFT = "left"
    RIGHT = "right"


@dataclass(frozen=True)
class Column:
    """Heading of a column and the format of its numbers.

    Cells are SI numbers; ``scale`` converts them to ``unit`` (``scale=1e3, unit="ms"``).
    Without ``decimals`` the column has one precision for all its values; without ``align``
    numbers are aligned right and text left.
    """

    title: str
    unit: str = ""
    scale: float = 1.0
    decimals: int | None = None
    signed: bool = False
    align: Align | None = None

    @property
    def heading(self) -> str:
        """Title with its unit, on one line."""
        return printable(f"{self.title} ({self.unit})" if self.unit else self.title)


@dataclass(frozen=True, repr=False)
class Table:
    """Columns and rows of cells; ``note`` explains notation such as ±.

    The first ``keys`` columns name a row: each part of a table that is too wide starts with them.
    """

    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    title: str = ""
    note: str = ""
    keys: int = 1

    def __post_init__(self) -> None:
        for number, row in enumerate(self.rows, start=1):
            if len(row) != len(self.columns):
                raise InputError(
                    f"row {number} of table '{self.title}' has {len(row)} cells "
                    f"for {len(self.columns)} columns",
                    "give every row one cell per column; use None for unknown values",
                )

    @classmethod
    def of(
        cls,
        items: Iterable[T],
        *columns: tuple[Column, Callable[[T], Cell]],
        title: str = "",
        note: str = "",
        keys: int = 1,
    ) -> "Table":
        """A row for each item; every column has a function from an item to its cell."""
        rows = tuple(tuple(shown(item) for _, shown in columns) for item in items)
        return cls(tuple(column for column, _ in columns), rows, title, note, keys)

    def __str__(self) -> str:
        from paceline.render.terminal import table_lines

        return "\n".join(table_lines(self))

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from paceline.render.html_page import table_html

        return table_html(self)

    def cells_of(self, index: int) -> list[Cell]:
        return [row[index] for row in self.rows]

    def align_of(self, index: int) -> Align:
        column = self.columns[index]
        if column.align is not None:
            return column.align
        known = [cell for cell in self.cells_of(index) if cell is not None]
        is_text = any(isinstance(cell, str) for cell in known) or not known
        return Align.LEFT if is_text else Align.RIGHT

    def texts_of(self, index: int) -> list[str]:
        """One column as text: numbers of one precision, ± and brackets one below the other.

        Padding inside a cell is FIGURE_SPACE, which printers with a fixed width replace.
        """
        return _column_texts(self.columns[index], self.cells_of(index))


def sort_key(cell: Cell) -> float | str | None:
    """The value that a column is sorted by."""
    return cell.value if isinstance(cell, Ranged) else cell


def _column_texts(column: Column, cells: list[Cell]) -> list[str]:
    numbers = [_number(cell, column.scale) for cell in cells]
    decimals = _decimals(column, cells, numbers)
    values = [
        MISSING if number is None else format_number(number.value, digits, signed=column.signed)
        for number, digits in zip(numbers, decimals, strict=True)
    ]
    intervals = _interval_texts(numbers, decimals)
    if any(intervals):
        width = max(map(len, values))
        padded = (pad(value, width, right=True, fill=FIGURE_SPACE) for value in values)
        values = [f"{value} {interval}" for value, interval in zip(padded, intervals, strict=True)]
    return [
        printable(cell) if isinstance(cell, str) else value
        for cell, value in zip(cells, values, strict=True)
    ]


def _number(cell: Cell, scale: float) -> Ranged | None:
    if cell is None or isinstance(cell, str):
        return None
    return (cell if isinstance(cell, Ranged) else Ranged(float(cell))).scaled(scale)


def _decimals(column: Column, cells: list[Cell], numbers: list[Ranged | None]) -> list[int]:
    """Decimals of each cell: those of the column, unless its own differ by two or more.

    Rows of one column may differ by orders of magnitude: images/s of a CNN above samples/s of a
    language model.
    """
    known = [number for number in numbers if number is not None]
    whole = all(isinstance(cell, int) for cell in cells if cell is not None)
    common = column.decimals
    if common is None:
        common = 0 if column.scale == 1.0 and whole else interval_decimals(known)
    if column.decimals is not None:
        return [common] * len(cells)
    own = [common if number is None else interval_decimals([number]) for number in numbers]
    if not any(number.bounds for number in known):
        own = [min(digits, common) for digits in own]
    return [digits if abs(digits - common) > 1 else common for digits in own]


def _interval_texts(numbers: list[Ranged | None], decimals: list[int]) -> list[str]:
    """The intervals of a column, all of one form and one width."""
    known = [number for number in numbers if number is not None]
    symmetric = all(number.half_width is not None for number in known if number.bounds)
    texts = [
        "" if number is None else interval_text(number, digits, symmetric=symmetric)
        for number, digits in zip(numbers, decimals, strict=True)
    ]
    width = max(map(len, texts), default=0)
    return [pad(text, width, right=symmetric, fill=FIGURE_SPACE) for text in texts]
