"""Reads tables of measurements: what can be used, and for every other line the reason."""

import csv
import gzip
import io
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from paceline.analyse.validation.measurement import Measurement
from paceline.analyse.validation.schema import (
    REQUIRED,
    header_remarks,
    missing_columns,
    read_cells,
)
from paceline.errors import InputError

if TYPE_CHECKING:
    from _csv import Reader

_LONGEST_CELL = 10_000_000


@dataclass(frozen=True, slots=True)
class RowProblem:
    """A line that cannot be used: where it stands, the id it gives, and why not."""

    file: str
    line: int
    id: str
    reason: str


@dataclass
class MeasurementTable:
    """Measurements in the order of their files, and everything that was said against others."""

    measurements: list[Measurement] = field(default_factory=list)
    problems: list[RowProblem] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._seen: dict[str, str] = {}

    @property
    def by_id(self) -> dict[str, Measurement]:
        """Measurements by id."""
        return {row.configuration.id: row for row in self.measurements}

    def add(self, file: str, line: int, outcome: Measurement | str, identifier: str) -> None:
        """Take in what a line holds; a second line of the same id is refused."""
        if isinstance(outcome, Measurement):
            first = self._seen.setdefault(outcome.configuration.id, f"line {line} of {file}")
            if first != f"line {line} of {file}":
                outcome = f"id '{identifier}' is already used on {first}"
        if isinstance(outcome, Measurement):
            self.measurements.append(outcome)
        else:
            self.problems.append(RowProblem(file, line, identifier, outcome))


def read_tables(paths: Iterable[Path]) -> MeasurementTable:
    """All of ``paths`` as one table; ids must be unique across files."""
    table = MeasurementTable()
    for path in paths:
        read_into(table, path)
    return table


def read_into(table: MeasurementTable, path: Path) -> None:
    """Add the lines of the CSV (or gzipped CSV) at ``path`` to ``table``."""
    hint = "give a CSV with the columns of 'paceline published --export FILE.csv'"
    try:
        with _open(path) as stream:
            read_lines(table, path.name, stream, hint)
    except FileNotFoundError:
        raise InputError(f"no file {path}", hint) from None
    except IsADirectoryError:
        raise InputError(f"{path} is a directory", hint) from None
    except (UnicodeDecodeError, gzip.BadGzipFile, EOFError):
        raise InputError(f"{path} is not a CSV in UTF-8", hint) from None
    except OSError as problem:
        raise InputError(f"{path} cannot be read: {problem.strerror or problem}", hint) from None


def read_lines(table: MeasurementTable, name: str, stream: Iterable[str], hint: str) -> None:
    """Add the lines of a CSV that is already open to ``table``, under the file name ``name``."""
    csv.field_size_limit(_LONGEST_CELL)
    reader = csv.reader(stream)
    header = [cell.strip() for cell in next(iter(_rows(reader)), (0, [""]))[1]]
    if not any(column in header for column in REQUIRED):
        raise InputError(f"{name} does not begin with a line of column names", hint)
    repeated = sorted({column for column in header if column and header.count(column) > 1})
    if repeated:
        raise InputError(f"{name} names column '{repeated[0]}' twice", "keep one of them")
    table.remarks += [f"{name}: {remark}" for remark in header_remarks(header)]
    lacking = missing_columns(header)
    lacks = f"the file has no column {', '.join(repr(column) for column in lacking)}"
    for line, cells in _rows(reader):
        if not any(cell.strip() for cell in cells):
            continue
        named = dict(zip(header, cells, strict=False))
        identifier = named.get("id", "").strip()
        if lacking:
            table.add(name, line, lacks, identifier)
        elif len(cells) != len(header):
            table.add(name, line, f"{len(cells)} cells for {len(header)} columns", identifier)
        else:
            table.add(name, line, read_cells(named), identifier)


def _rows(reader: "Reader") -> Iterator[tuple[int, list[str]]]:
    """Rows with their line numbers; a line that is no CSV comes out as one odd cell."""
    while True:
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as problem:
            cells = [f"not CSV: {problem}"]
        yield reader.line_num, cells


def _open(path: Path) -> TextIO:
    if path.suffix == ".gz":
        return io.TextIOWrapper(gzip.open(path), encoding="utf-8-sig", newline="")
    return path.open(encoding="utf-8-sig", newline="")
