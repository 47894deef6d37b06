"""Read tables of measurements: usable rows, and the reason for every rejected line."""

import csv
import gzip
import io
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING

from paceline.errors import InputError
from paceline.user_files import opened
from paceline.validation.published_row import PublishedRow
from paceline.validation.row_schema import REQUIRED, header_remarks, missing_columns, read_cells

if TYPE_CHECKING:
    from _csv import Reader

_LONGEST_CELL = 10_000_000
_LONGEST_ID = 60


@dataclass(frozen=True, slots=True)
class RowProblem:
    """A rejected line: its position, id and reason."""

    file: str
    line: int
    id: str
    reason: str


@dataclass
class MeasurementTable:
    """Measurements in file order, and the problems of rejected lines."""

    measurements: list[PublishedRow] = field(default_factory=list)
    problems: list[RowProblem] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._seen: dict[str, str] = {}

    @property
    def by_id(self) -> dict[str, PublishedRow]:
        return {row.configuration.id: row for row in self.measurements}

    def add(self, file: str, line: int, outcome: PublishedRow | str, identifier: str) -> None:
        """Add the content of a line; a second line with the same id is rejected."""
        if isinstance(outcome, PublishedRow):
            first = self._seen.setdefault(outcome.configuration.id, f"line {line} of {file}")
            if first != f"line {line} of {file}":
                outcome = f"id '{identifier}' is already used on {first}"
        if isinstance(outcome, PublishedRow):
            self.measurements.append(outcome)
        else:
            self.problems.append(RowProblem(file, line, identifier, outcome))


def read_tables(paths: Iterable[Path]) -> MeasurementTable:
    """All ``paths`` as one table; ids must be unique across files."""
    table = MeasurementTable()
    for path in paths:
        read_into(table, path)
    return table


def read_into(table: MeasurementTable, path: Path) -> None:
    """Add the lines of the CSV (or gzipped CSV) at ``path`` to ``table``."""
    hint = "use a CSV with the columns of 'paceline catalog publications --export FILE.csv'"
    try:
        with opened(path) as file, _text(path, file) as stream:
            read_lines(table, path.name, stream, hint)
    except (gzip.BadGzipFile, zlib.error, EOFError):
        raise InputError(f"{path} is damaged or not gzip", hint) from None
    except OSError as problem:
        raise InputError(f"{path} cannot be read: {problem.strerror or problem}", hint) from None


def read_lines(table: MeasurementTable, name: str, stream: Iterable[str], hint: str) -> None:
    """Add the lines of a CSV that is already open to ``table``, under the file name ``name``."""
    csv.field_size_limit(_LONGEST_CELL)
    reader = csv.reader(stream)
    first = next(_rows(reader), None)
    header = [cell.strip() for cell in first.cells] if first is not None else []
    if not any(column in header for column in REQUIRED):
        raise InputError(f"{name} has no header line with column names", _hint(header, hint))
    repeated = sorted({column for column in header if column and header.count(column) > 1})
    if repeated:
        raise InputError(f"{name} has column '{repeated[0]}' twice", "remove one of them")
    table.remarks += [f"{name}: {remark}" for remark in header_remarks(header)]
    lacking = missing_columns(header)
    lacks = f"the file has no column {', '.join(repr(column) for column in lacking)}"
    for row in _rows(reader):
        if not row.problem and not any(cell.strip() for cell in row.cells):
            continue
        named = dict(zip(header, row.cells, strict=False))
        identifier = " ".join(named.get("id", "").split())[:_LONGEST_ID]
        if row.problem:
            table.add(name, row.line, f"not CSV: {row.problem}", identifier)
        elif lacking:
            table.add(name, row.line, lacks, identifier)
        elif len(row.cells) != len(header):
            reason = f"{len(row.cells)} cells for {len(header)} columns"
            table.add(name, row.line, reason, identifier)
        else:
            table.add(name, row.line, read_cells(named), identifier)


@dataclass(frozen=True, slots=True)
class _Row:
    """Cells of a row that ends on ``line``, or the CSV error."""

    line: int
    cells: list[str]
    problem: str = ""


def _rows(reader: "Reader") -> Iterator[_Row]:
    while True:
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as problem:
            yield _Row(reader.line_num, [], str(problem))
        else:
            yield _Row(reader.line_num, cells)


def _hint(header: list[str], usual: str) -> str:
    """A hint about the separator if the first line is a single cell with column names."""
    for separator, name in ((";", "semicolons"), ("\t", "tabs"), ("|", "bars")):
        if len(header) == 1 and set(REQUIRED) & set(header[0].split(separator)):
            return f"its cells are separated by {name}; use commas"
    return usual


def _text(path: Path, file: IO[bytes]) -> IO[str]:
    """The text of a file; invalid UTF-8 becomes a marker, so that only its line is rejected."""
    plain = gzip.GzipFile(fileobj=file) if path.suffix == ".gz" else file
    return io.TextIOWrapper(plain, encoding="utf-8-sig", errors="replace", newline="")
