"""Cells and headings of user-written tables: any separator, units in headings."""

import csv
import re

_UNIT = re.compile(r"(?<![_\s(\[])[_\s(\[]+(s|sec|seconds|ms|us|µs|ns)[)\]]*$")
_UNITS = {"s": 1.0, "sec": 1.0, "seconds": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}


def cells_of(text: str) -> list[str]:
    """Cells of a row, separated by comma, semicolon, tab or blanks."""
    for separator in (",", ";", "\t"):
        if separator in text:
            try:
                return [cell.strip() for cell in next(csv.reader([text], delimiter=separator))]
            except (csv.Error, StopIteration):
                return []
    return text.split()


def split_unit(heading: str) -> tuple[str, float | None]:
    """A heading without its unit, and the seconds of the unit if it has one."""
    unit = _UNIT.search(heading)
    plain = heading[: unit.start()] if unit else heading
    return plain, _UNITS[unit[1]] if unit else None
