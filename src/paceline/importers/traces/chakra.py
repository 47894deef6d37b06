"""Chakra execution traces (MLCommons): one file of nodes per rank, as protocol buffers.

Traces made for simulators have dependencies but no times, and are rejected.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from paceline.errors import InputError
from paceline.importers.logs.parsing.log_lines import read_chunks
from paceline.importers.logs.parsing.protocol_buffers import BYTES, fields, varint
from paceline.importers.traces.parsing.parsed_trace import ParsedTrace
from paceline.importers.traces.parsing.phase_names import phase_of
from paceline.importers.traces.parsing.spans import MOST_SPANS, Span, measured_step
from paceline.step import Phase

LARGEST_NODE = 1 << 24
MICROSECOND = 1e-6
_NODE_ID, _NAME, _KIND, _START, _DURATION, _ATTRIBUTE = 1, 2, 3, 6, 7, 10
_LOAD, _STORE, _COMPUTE, _SEND, _RECEIVE, _COLLECTIVE = 2, 3, 4, 5, 6, 7
_MESSAGES = (_SEND, _RECEIVE, _COLLECTIVE)
_COUNTS = (7, 9, 11, 13)
"""Protobuf fields of an attribute that hold a plain varint."""
_FLAG, _TEXT = 27, 29


@dataclass
class _Node:
    """One node; ``start`` and ``duration`` in microseconds."""

    name: str = ""
    kind: int = 0
    start: int = 0
    duration: int = 0
    attributes: dict[str, int | str] = field(default_factory=dict)


def looks_like_chakra(head: bytes) -> bool:
    """Whether a file starts with Chakra's metadata (a short message with a version)."""
    try:
        size, at = varint(head, 0)
        first = next(fields(head[at : at + size]))
    except (ValueError, IndexError, StopIteration):
        return False
    number, kind, value = first
    version = value.decode("ascii", "replace") if isinstance(value, bytes) else ""
    return number == 1 and kind == BYTES and version[:1].isdigit() and version.isprintable()


def read_chakra(path: Path, rank: int) -> ParsedTrace:
    """One step of one rank: all nodes with times."""
    spans: list[Span] = []
    unread = nodes = 0
    warnings = []
    for number, message in enumerate(_messages(path)):
        if number == 0:
            continue  # the metadata
        node = None if message is None else _node(message)
        if node is None:
            unread += 1
            continue
        nodes += 1
        if node.duration > 0 and len(spans) < MOST_SPANS:
            spans.append(_span(node))
    if nodes and not spans:
        raise InputError(
            f"{path} describes operations without times (nodes: {nodes})",
            "record an execution trace and a Kineto trace, and link them with chakra_trace_link",
        )
    if len(spans) == MOST_SPANS:
        warnings.append(f"only the first {MOST_SPANS:,} nodes were read")
    steps = (measured_step({rank: spans}, "step"),) if spans else ()
    return ParsedTrace("chakra", steps, unread=unread, warnings=tuple(warnings))


def _messages(path: Path) -> Iterator[bytes | None]:
    """Yield length-prefixed messages; None, then stop, for a truncated or oversized one."""
    held = b""
    for chunk in read_chunks(path):
        held += chunk
        at = 0
        while True:
            try:
                size, begin = varint(held, at)
            except IndexError:
                break
            except ValueError:
                yield None
                return
            if size > LARGEST_NODE:
                yield None
                return
            if begin + size > len(held):
                break
            yield held[begin : begin + size]
            at = begin + size
        held = held[at:]
    if held:
        yield None


def _node(message: bytes) -> _Node | None:
    node = _Node()
    try:
        for number, _, value in fields(message):
            if number == _NAME and isinstance(value, bytes):
                node.name = value.decode("utf-8", "replace")[:200]
            elif number == _ATTRIBUTE and isinstance(value, bytes):
                node.attributes |= _attribute(value)
            elif number == _KIND and isinstance(value, int):
                node.kind = value
            elif number == _START and isinstance(value, int):
                node.start = value
            elif number == _DURATION and isinstance(value, int):
                node.duration = value
    except (ValueError, IndexError):
        return None
    return node


def _attribute(message: bytes) -> dict[str, int | str]:
    """Name and value of a numeric, boolean or text attribute."""
    name = ""
    found: int | str | None = None
    for number, _, value in fields(message):
        if number == 1 and isinstance(value, bytes):
            name = value.decode("utf-8", "replace")[:100]
        elif number in (*_COUNTS, _FLAG) and isinstance(value, int):
            found = value
        elif number == _TEXT and isinstance(value, bytes):
            found = value.decode("utf-8", "replace")[:200]
    return {} if found is None else {name: found}


def _span(node: _Node) -> Span:
    start, end = node.start * MICROSECOND, (node.start + node.duration) * MICROSECOND
    if node.kind in _MESSAGES:
        size, group = node.attributes.get("comm_size", 0), node.attributes.get("pg_name", "")
        size_bytes = float(size) if isinstance(size, int) else 0.0
        lane = f"network {group}".strip()
        return Span(
            node.name, Phase.COMMUNICATE, lane, start, end, size_bytes=size_bytes, group=str(group)
        )
    if node.kind in (_LOAD, _STORE):
        return Span(node.name, Phase.COPY, "copy", start, end)
    phase = phase_of(node.name) or Phase.OTHER
    lane = "host" if node.attributes.get("is_cpu_op") else "compute"
    return Span(node.name, phase, lane, start, end)
