"""TensorBoard event files: records with a step, a time and scalars."""

import struct
from collections.abc import Iterator
from pathlib import Path

from paceline.importers.logs.parsing.log_builder import LogBuilder
from paceline.importers.logs.parsing.log_lines import read_chunks
from paceline.importers.logs.parsing.metric_rows import MetricRows
from paceline.importers.logs.parsing.parsed_log import ParsedLog
from paceline.importers.logs.parsing.protocol_buffers import FIXED32, FIXED64, fields

NAME_PART = "tfevents"
LARGEST_RECORD = 1 << 26


def is_event_file(path: Path) -> bool:
    """Whether the file name is that of a TensorBoard event file."""
    return NAME_PART in path.name and path.is_file()


def read_event_file(path: Path) -> ParsedLog:
    """Read the scalars of an event file, up to the first damaged record."""
    log, rows = LogBuilder("tensorboard"), MetricRows()
    current: dict[str, float] = {}
    for record in _records(path, log):
        log.lines += 1
        try:
            clock, step, scalars = _event(record)
        except (ValueError, struct.error, IndexError):
            log.unread_lines += 1
            continue
        if current and step != current["step"]:
            rows.add(current)
            current = {}
        if scalars:
            current |= {"step": float(step), "wall_time": clock, **scalars}
    if current:
        rows.add(current)
    rows.add_to(log)
    return log.build()


def _records(path: Path, log: LogBuilder) -> Iterator[bytes]:
    """Yield the records; each is stored as length, checksum, bytes, checksum."""
    held = b""
    for chunk in read_chunks(path):
        held += chunk
        start = 0
        while len(held) - start >= 12:
            (size,) = struct.unpack_from("<Q", held, start)
            if size > LARGEST_RECORD:
                log.warn("damaged record: the rest of the file is not read")
                log.unread_lines += 1
                return
            if len(held) - start < 16 + size:
                break
            yield held[start + 12 : start + 12 + size]
            start += 16 + size
        held = held[start:]
    if held:
        log.unread_lines += 1
        log.warn("the file is truncated within a record")


def _event(record: bytes) -> tuple[float, int, dict[str, float]]:
    """Time, step and scalars of an ``Event``."""
    clock, step = 0.0, 0
    scalars: dict[str, float] = {}
    for number, kind, value in fields(record):
        if number == 1 and kind == FIXED64 and isinstance(value, bytes):
            (clock,) = struct.unpack("<d", value)
        elif number == 2 and isinstance(value, int):
            step = value
        elif number == 5 and isinstance(value, bytes):
            for part, _, summary in fields(value):
                if part == 1 and isinstance(summary, bytes):
                    scalars |= _scalar(summary)
    return clock, step, scalars


def _scalar(value: bytes) -> dict[str, float]:
    """Tag and number of a ``Summary.Value``, as a plain float or a tensor of one."""
    tag, number = "", None
    for field, kind, content in fields(value):
        if not isinstance(content, bytes):
            continue
        if field == 1:
            tag = content.decode("utf-8", "replace")[:200]
        elif field == 2 and kind == FIXED32:
            (number,) = struct.unpack("<f", content)
        elif field == 8:
            number = _tensor_number(content)
    return {} if number is None or not tag else {tag: number}


def _tensor_number(tensor: bytes) -> float | None:
    """The only element of a tensor of 32- or 64-bit floats."""
    for field, _, content in fields(tensor):
        if field in (4, 5, 6) and isinstance(content, bytes) and len(content) in (4, 8):
            return float(struct.unpack("<f" if len(content) == 4 else "<d", content)[0])
    return None
