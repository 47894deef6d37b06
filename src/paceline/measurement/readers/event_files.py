"""TensorBoard's event files, read directly: records with a step, a time and named numbers."""

import struct
from collections.abc import Iterator
from pathlib import Path

from paceline.measurement.readers.builder import LogBuilder
from paceline.measurement.readers.lines import read_chunks
from paceline.measurement.readers.metrics import MetricRows
from paceline.measurement.readers.parsed_log import ParsedLog

NAME_PART = "tfevents"
LARGEST_RECORD = 1 << 26

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
Field = tuple[int, int, int | bytes]


def is_event_file(path: Path) -> bool:
    """Whether a file is TensorBoard's, by its name."""
    return NAME_PART in path.name and path.is_file()


def read_event_file(path: Path) -> ParsedLog:
    """What the scalars of an event file tell; what follows a damaged record is not read."""
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
    rows.tell(log)
    return log.build()


def _records(path: Path, log: LogBuilder) -> Iterator[bytes]:
    """Bytes of each record: its length, a checksum, the bytes, a checksum."""
    held = b""
    for chunk in read_chunks(path):
        held += chunk
        start = 0
        while len(held) - start >= 12:
            (size,) = struct.unpack_from("<Q", held, start)
            if size > LARGEST_RECORD:
                log.warn("a damaged record: what follows it is not read")
                log.unread_lines += 1
                return
            if len(held) - start < 16 + size:
                break
            yield held[start + 12 : start + 12 + size]
            start += 16 + size
        held = held[start:]
    if held:
        log.unread_lines += 1
        log.warn("the file ends within a record")


def _event(record: bytes) -> tuple[float, int, dict[str, float]]:
    """Time, step and scalars of an ``Event``."""
    clock, step = 0.0, 0
    scalars: dict[str, float] = {}
    for number, kind, value in _fields(record):
        if number == 1 and kind == _FIXED64 and isinstance(value, bytes):
            (clock,) = struct.unpack("<d", value)
        elif number == 2 and isinstance(value, int):
            step = value
        elif number == 5 and isinstance(value, bytes):
            for part, _, summary in _fields(value):
                if part == 1 and isinstance(summary, bytes):
                    scalars |= _scalar(summary)
    return clock, step, scalars


def _scalar(value: bytes) -> dict[str, float]:
    """Tag and number of a ``Summary.Value``, as a plain float or a tensor of one."""
    tag, number = "", None
    for field, kind, content in _fields(value):
        if not isinstance(content, bytes):
            continue
        if field == 1:
            tag = content.decode("utf-8", "replace")[:200]
        elif field == 2 and kind == _FIXED32:
            (number,) = struct.unpack("<f", content)
        elif field == 8:
            number = _tensor_number(content)
    return {} if number is None or not tag else {tag: number}


def _tensor_number(tensor: bytes) -> float | None:
    """The only element of a tensor of 32- or 64-bit floats."""
    for field, _, content in _fields(tensor):
        if field in (4, 5, 6) and isinstance(content, bytes) and len(content) in (4, 8):
            return float(struct.unpack("<f" if len(content) == 4 else "<d", content)[0])
    return None


def _fields(message: bytes) -> Iterator[Field]:
    """Number, kind and content of each field of a protocol buffer."""
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        number, kind = key >> 3, key & 7
        if kind == _VARINT:
            value, at = _varint(message, at)
            yield number, kind, value
            continue
        if kind == _BYTES:
            size, at = _varint(message, at)
        elif kind in (_FIXED64, _FIXED32):
            size = 8 if kind == _FIXED64 else 4
        else:
            raise ValueError(f"no field of kind {kind} is known")
        if at + size > len(message):
            raise ValueError("the message is cut off")
        yield number, kind, message[at : at + size]
        at += size


def _varint(message: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at
        if shift > 63:
            raise ValueError("a number of more than 64 bits")
