"""Layer-wise traces as tables: id, name, forward, backward, communication, size."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

from paceline.errors import InputError
from paceline.importers.logs.parsing.log_lines import read_lines
from paceline.importers.logs.parsing.printed_numbers import finite
from paceline.importers.traces.parsing.table_cells import cells_of, split_unit
from paceline.step.layer_trace import LayerTrace, TracedLayer

MOST_LAYERS = 100_000
BYTES_PER_PARAMETER = 4.0
DEFAULT_UNIT_SECONDS = 1e-6
"""Times without a unit are microseconds, as in the traces of Shi et al. (2018)."""

_WORKERS = re.compile(r"(\d{1,6})\s*_?(?:nodes?|workers?|ranks?|gpus?|devices?)")
_MEANINGS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("forward", re.compile(r"^(?:t_)?(?:forward|fwd|fp|f)$")),
    ("backward", re.compile(r"^(?:t_)?(?:backward|bwd|bp|b)$")),
    ("communication", re.compile(r"^(?:t_)?(?:comm|all_?reduce|exchange|c$)")),
    ("bytes", re.compile(r"^(?:gradient_bytes|bytes|size|size_bytes|gradient_size|grad_size)$")),
    ("parameters", re.compile(r"^(?:params|parameters|weights)$")),
    ("name", re.compile(r"^(?:name|layer_name|op_name|layer)$")),
    ("id", re.compile(r"^(?:id|layer_id|index|no|#)$")),
)
_PLAIN_ORDER = ("id", "name", "forward", "backward", "communication", "bytes")


@dataclass(frozen=True, slots=True)
class CsvColumn:
    """A column: its quantity, the seconds of its unit, and its number of workers."""

    meaning: str
    unit_seconds: float = DEFAULT_UNIT_SECONDS
    workers: int = 0


@dataclass
class _Table:
    layers: list[TracedLayer] = field(default_factory=list)
    unread: int = 0


def read_layer_csv(path: Path) -> LayerTrace:
    """Read a table with one row per layer, starting at the input.

    Headings may contain a unit (``forward_ms``) and, for communication, a number of workers
    (``t_comm_8nodes_us``); a table without headings has the columns id,
    name, forward, backward, communication (microseconds) and size (bytes).
    """
    rows = (cells_of(line.text) for line in read_lines(path) if line.text.strip())
    head = next(rows, None)
    if head is None:
        raise InputError(f"{path} is empty", "pass a layer-wise trace")
    columns = _columns(head)
    warnings: list[str] = []
    table = _Table()
    if columns is None:
        columns = {position: CsvColumn(meaning) for position, meaning in enumerate(_PLAIN_ORDER)}
        _add(table, head, columns)
    for row in islice(rows, MOST_LAYERS):
        _add(table, row, columns)
    if not table.layers:
        raise InputError(
            f"{path} has no readable row of a layer-wise trace",
            "use the columns id, name, forward, backward, communication, size",
        )
    if table.unread:
        warnings.append(f"rows not understood: {table.unread}")
    if not any(column.meaning == "forward" for column in columns.values()):
        warnings.append("the trace has no forward times: they are assumed to be zero")
    if not any(layer.gradient_bytes for layer in table.layers):
        warnings.append("the trace has no gradient sizes: the replay sends nothing")
    return LayerTrace(tuple(table.layers), path.stem, warnings=tuple(warnings))


def looks_like_layer_csv(head: str) -> bool:
    """Whether the first line names the columns of a layer-wise trace."""
    columns = _columns(cells_of(head.lstrip().split("\n", 1)[0])) or {}
    found = {column.meaning for column in columns.values()}
    return "backward" in found and bool(found & {"forward", "communication", "bytes"})


def _columns(head: Sequence[str]) -> dict[int, CsvColumn] | None:
    """Columns by position; None if the row has numbers instead of headings."""
    if sum(finite(cell) is not None for cell in head) > 1:
        return None
    columns: dict[int, CsvColumn] = {}
    for position, heading in enumerate(head[:100]):
        column = _column(heading.lower())
        if column is not None and (
            column.meaning == "communication"
            or column.meaning not in {known.meaning for known in columns.values()}
        ):
            columns[position] = column
    return columns


def _column(heading: str) -> CsvColumn | None:
    plain, unit = split_unit(heading)
    workers = _WORKERS.search(plain)
    plain = re.sub(r"[\s.()\[\]-]+", "_", plain).strip("_")
    for meaning, pattern in _MEANINGS:
        if pattern.match(plain):
            seconds = DEFAULT_UNIT_SECONDS if unit is None else unit
            return CsvColumn(meaning, seconds, int(workers[1]) if workers else 0)
    return None


def _add(table: _Table, row: Sequence[str], columns: Mapping[int, CsvColumn]) -> None:
    """Add one layer, or count the row as unread."""
    values: dict[str, float] = {}
    communication: dict[int, float] = {}
    name = ""
    for position, column in columns.items():
        cell = row[position] if position < len(row) else ""
        if column.meaning == "name":
            name = cell[:200]
            continue
        value = finite(cell) if cell else 0.0
        if column.meaning == "id":
            name = name or cell[:200]
        elif value is None or not 0 <= value < 1e18:
            table.unread += 1
            return
        elif column.meaning == "communication":
            communication.setdefault(column.workers, value * column.unit_seconds)
        elif column.meaning in ("forward", "backward"):
            values[column.meaning] = value * column.unit_seconds
        else:
            values[column.meaning] = value
    if "backward" not in values or len(row) < 3:
        table.unread += 1
        return
    size = values.get("bytes", values.get("parameters", 0.0) * BYTES_PER_PARAMETER)
    table.layers.append(
        TracedLayer(
            name or f"layer {len(table.layers)}",
            values.get("forward", 0.0),
            values["backward"],
            size,
            {workers: seconds for workers, seconds in communication.items() if seconds > 0},
        )
    )
