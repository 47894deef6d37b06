"""Operation tables: one row per operation with rank, step, operation, start and duration.

Further columns (``stage``, ``dp_rank``) are coordinates of the rank.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from paceline.errors import InputError
from paceline.importers.logs.parsing.log_lines import read_lines
from paceline.importers.logs.parsing.printed_numbers import finite
from paceline.importers.traces.parsing.parsed_trace import ParsedTrace
from paceline.importers.traces.parsing.phase_names import lane_of, phase_of
from paceline.importers.traces.parsing.spans import MOST_SPANS, Span, measured_step
from paceline.importers.traces.parsing.table_cells import cells_of, split_unit
from paceline.step import Phase

LARGEST_RANK = 1_000_000
MOST_STEPS = 20_000
_MEANINGS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("rank", re.compile(r"^(?:global_)?(?:rank|worker|device)(?:_id)?$")),
    ("step", re.compile(r"^(?:step|iteration|iter)(?:_id)?$")),
    ("name", re.compile(r"^(?:op_?type|op|operation|kind|name|event)$")),
    ("start", re.compile(r"^(?:start|begin|ts|timestamp)(?:_ts|_time)?$")),
    ("duration", re.compile(r"^(?:dur|duration|seconds|elapsed)$")),
    ("end", re.compile(r"^(?:end|stop)(?:_ts|_time)?$")),
    ("lane", re.compile(r"^(?:lane|stream|thread|resource)$")),
    ("bytes", re.compile(r"^(?:bytes|size|size_bytes)$")),
)
_COORDINATES = re.compile(
    r"^(?:(?:dp|tp|pp|ep|cp|data|tensor|pipeline)_(?:rank|stage)|stage|node|host)$"
)
_POINT_TO_POINT = re.compile(r"send|recv", re.IGNORECASE)


@dataclass
class _Reading:
    """State of one table: spans by step and rank, coordinates of ranks."""

    spans: dict[str, dict[int, list[Span]]] = field(default_factory=dict)
    coordinates: dict[int, dict[str, str]] = field(default_factory=dict)
    unread: int = 0
    kept: int = 0


def looks_like_operations(head: str) -> bool:
    """Whether the first line is the header of an operation table."""
    meanings = {meaning for meaning, _ in _columns(cells_of(head.lstrip().split("\n", 1)[0]))}
    return {"rank", "name", "start"} <= meanings and bool({"duration", "end"} & meanings)


def read_operations(path: Path) -> ParsedTrace:
    """Read the steps of all ranks; times are in seconds unless a heading has a unit."""
    rows = (cells_of(line.text) for line in read_lines(path) if line.text.strip())
    columns = _columns(next(rows, []))
    if "start" not in {meaning for meaning, _ in columns}:
        raise InputError(
            f"{path} has no header row of an operation table",
            "use the columns rank, step, operation, start, duration (optional: stage, ...)",
        )
    reading = _Reading()
    for row in rows:
        if reading.kept >= MOST_SPANS:
            break
        _add(reading, row, columns)
    warnings = []
    if reading.kept >= MOST_SPANS:
        warnings.append(f"only the first {MOST_SPANS:,} operations were read")
    steps = []
    for step, ranks in list(reading.spans.items())[:MOST_STEPS]:
        begin = min(span.start for spans in ranks.values() for span in spans)
        begins = dict.fromkeys(ranks, begin)
        steps.append(measured_step(ranks, f"step {step}" if step else "step", begins))
    return ParsedTrace(
        "operations",
        tuple(steps),
        len(reading.coordinates) or None,
        reading.unread,
        tuple(warnings),
        coordinates=reading.coordinates,
        common_clock=True,
    )


def _columns(head: Sequence[str]) -> list[tuple[str, float]]:
    """Quantity and unit (seconds) of each column; coordinates keep their name."""
    found: list[tuple[str, float]] = []
    for heading in head[:100]:
        plain, unit = split_unit(heading.lower())
        plain = re.sub(r"[\s.()\[\]-]+", "_", plain).strip("_")
        meaning = next((name for name, pattern in _MEANINGS if pattern.match(plain)), "")
        if not meaning and _COORDINATES.match(plain):
            meaning = f"coordinate {plain}"
        taken = {name for name, _ in found}
        found.append(("" if meaning in taken else meaning, 1.0 if unit is None else unit))
    return found


def _add(reading: _Reading, row: Sequence[str], columns: Sequence[tuple[str, float]]) -> None:
    """Add one operation, or count the row as unread."""
    cells = {name: (cell, unit) for (name, unit), cell in zip(columns, row, strict=False) if name}
    rank = finite(cells.get("rank", ("", 0.0))[0])
    start, duration, end = (_seconds(cells, name) for name in ("start", "duration", "end"))
    if duration is None and start is not None and end is not None:
        duration = end - start
    name = cells.get("name", ("", 0.0))[0][:200]
    if (
        rank is None
        or not 0 <= rank < LARGEST_RANK
        or start is None
        or duration is None
        or duration < 0
        or not name
    ):
        reading.unread += 1
        return
    reading.kept += 1
    size = finite(cells.get("bytes", ("0", 0.0))[0]) or 0.0
    phase = phase_of(name) or Phase.OTHER
    lane = cells.get("lane", ("", 0.0))[0][:100] or _lane(name, phase)
    step = cells.get("step", ("", 0.0))[0][:100]
    span = Span(name, phase, lane, start, start + duration, size_bytes=max(0.0, size))
    reading.spans.setdefault(step, {}).setdefault(int(rank), []).append(span)
    coordinates = {
        key.removeprefix("coordinate "): cell[:100]
        for key, (cell, _) in cells.items()
        if key.startswith("coordinate ")
    }
    reading.coordinates.setdefault(int(rank), coordinates)


def _lane(name: str, phase: Phase) -> str:
    """Lane of an operation; sends and receives get a lane each, since they run concurrently."""
    return name if _POINT_TO_POINT.search(name) else lane_of(phase)


def _seconds(cells: dict[str, tuple[str, float]], name: str) -> float | None:
    text, unit = cells.get(name, ("", 1.0))
    value = finite(text)
    return None if value is None or abs(value) > 1e15 else value * unit
