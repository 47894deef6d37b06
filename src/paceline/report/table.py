"""Tables as values: what the page and the terminal both print."""

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from paceline.errors import InputError
from paceline.report.numbers import Estimate, format_number, interval_decimals
from paceline.report.text import MISSING, pad, printable

Cell: TypeAlias = str | float | Estimate | None
"""Text, a number, a number with its interval, or nothing known."""

FIGURE_SPACE = "\u2007"
"""A space as wide as a digit: pads numbers where the font is proportional."""


class Align(StrEnum):
    """The edge at which the cells of a column line up."""

    LEFT = "left"
    RIGHT = "right"


@dataclass(frozen=True)
class Column:
    """Heading of a column and how its numbers are printed.

    Cells hold SI numbers; ``scale`` turns them into ``unit`` (``scale=1e3, unit="ms"``).
    Without ``decimals`` the column gets one precision that suits its values; without
    ``align`` numbers stand right and text left.
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


@dataclass(frozen=True)
class Table:
    """Columns and rows of cells; ``note`` says once what all numbers share, as what ± means."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    title: str = ""
    note: str = ""

    def __post_init__(self) -> None:
        for number, row in enumerate(self.rows, start=1):
            if len(row) != len(self.columns):
                raise InputError(
                    f"row {number} of table '{self.title}' has {len(row)} cells "
                    f"for {len(self.columns)} columns",
                    "give every row one cell per column; None where nothing is known",
                )

    def cells_of(self, index: int) -> list[Cell]:
        """The cells of one column, top to bottom."""
        return [row[index] for row in self.rows]

    def align_of(self, index: int) -> Align:
        """Edge at which a column lines up."""
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
    """What a reader expects a column to be sorted by."""
    return cell.value if isinstance(cell, Estimate) else cell


def _column_texts(column: Column, cells: list[Cell]) -> list[str]:
    estimates = [_estimate(cell, column.scale) for cell in cells]
    decimals = column.decimals if column.decimals is not None else _decimals(column, cells)
    values = [_value_text(estimate, decimals, column.signed) for estimate in estimates]
    intervals = _interval_texts(estimates, decimals)
    value_width = max(map(len, values), default=0)
    interval_width = max(map(len, intervals), default=0)
    texts: list[str] = []
    for cell, value, interval in zip(cells, values, intervals, strict=True):
        if isinstance(cell, str):
            texts.append(printable(cell))
        elif interval_width:
            left = pad(value or MISSING, value_width, right=True, fill=FIGURE_SPACE)
            texts.append(left + pad(interval, interval_width, fill=FIGURE_SPACE))
        else:
            texts.append(value or MISSING)
    return texts


def _estimate(cell: Cell, scale: float) -> Estimate | None:
    if cell is None or isinstance(cell, str):
        return None
    return (cell if isinstance(cell, Estimate) else Estimate(float(cell))).scaled(scale)


def _decimals(column: Column, cells: list[Cell]) -> int:
    numbers = [cell for cell in cells if cell is not None and not isinstance(cell, str)]
    if column.scale == 1.0 and all(isinstance(number, int) for number in numbers):
        return 0
    return interval_decimals(e for cell in numbers if (e := _estimate(cell, column.scale)))


def _value_text(estimate: Estimate | None, decimals: int, signed: bool) -> str:
    return "" if estimate is None else format_number(estimate.value, decimals, signed=signed)


def _interval_texts(estimates: list[Estimate | None], decimals: int) -> list[str]:
    """`` ± 4.1`` if every interval of the column is symmetric, else `` [178, 202]``."""
    bounded = [e for e in estimates if e is not None and e.low is not None and e.high is not None]
    symmetric = all(estimate.half_width is not None for estimate in bounded)
    parts = [_interval_parts(estimate, decimals, symmetric) for estimate in estimates]
    widths = [max(len(part[i]) for part in parts) if parts else 0 for i in range(2)]
    return [
        " "
        + pad(before, widths[0], right=True, fill=FIGURE_SPACE)
        + pad(number, widths[1], right=True, fill=FIGURE_SPACE)
        + after
        if number
        else ""
        for before, number, after in parts
    ]


def _interval_parts(
    estimate: Estimate | None, decimals: int, symmetric: bool
) -> tuple[str, str, str]:
    if estimate is None or estimate.low is None or estimate.high is None:
        return "", "", ""
    if symmetric:
        return "± ", format_number(estimate.half_width, decimals), ""
    low, high = format_number(estimate.low, decimals), format_number(estimate.high, decimals)
    return f"[{low}, ", high, "]"
