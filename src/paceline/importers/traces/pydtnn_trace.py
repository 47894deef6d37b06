"""PyDTNN traces: seconds per event, summed over the run, on rank 0."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from paceline.importers.logs.parsing.log_lines import read_lines
from paceline.importers.logs.parsing.printed_numbers import count, finite
from paceline.importers.traces.parsing.parsed_trace import ParsedTrace
from paceline.importers.traces.parsing.spans import Span, measured_step
from paceline.step import Phase
from paceline.step.layer_trace import LayerTrace, TracedLayer

HEADER = "Event type;Event value;Event name;Calls;Total time;Median of times"
MOST_ROWS = 100_000

_EVENT = re.compile(r"^(\d{1,6})_(\w+?)_(forward|backward|allreduce_dw|wait_dw|update_dw)$")
_PHASES = {
    "forward": Phase.FORWARD,
    "backward": Phase.BACKWARD,
    "allreduce_dw": Phase.COMMUNICATE,
    "wait_dw": Phase.WAIT,
    "update_dw": Phase.UPDATE,
}


@dataclass(frozen=True, slots=True)
class EventRow:
    """One row: layer number, layer, action, calls and total seconds."""

    number: int
    layer: str
    action: str
    calls: int
    total_seconds: float


def read_pydtnn_trace(path: Path, rank: int = 0) -> ParsedTrace:
    """The mean step of the run, layer by layer in the order of the file.

    Only sums over the run are recorded, so each task starts where the previous one ends.
    Communication follows backward; its overlap is not recorded.
    """
    rows, steps, unread = _leaf_rows(path)
    spans: list[Span] = []
    clock = 0.0
    for row in rows:
        seconds = row.total_seconds / steps
        phase = _PHASES[row.action]
        resource = "network" if phase is Phase.COMMUNICATE else "compute"
        if phase is Phase.WAIT:  # the host waits for the network
            phase, resource = Phase.COMMUNICATE, "network"
        span = Span(f"{row.layer} {row.action}", phase, resource, clock, clock + seconds, row.layer)
        spans.append(span)
        clock = span.end
    if not spans:
        return ParsedTrace("pydtnn", (), None, unread)
    step = measured_step({rank: spans}, "mean step", metadata={"steps": float(steps)})
    return ParsedTrace(
        "pydtnn",
        (step,),
        None,
        unread,
        ("only sums over the run are recorded: the order within a step is nominal",),
    )


def pydtnn_layers(path: Path) -> LayerTrace:
    """Mean forward, backward and gradient exchange seconds per layer and step."""
    rows, steps, unread = _leaf_rows(path)
    layers: dict[int, TracedLayer] = {}
    update = 0.0
    for row in rows:
        seconds = row.total_seconds / steps
        known = layers.get(row.number) or TracedLayer(row.layer, 0.0, 0.0)
        forward, backward = known.forward_seconds, known.backward_seconds
        exchange = dict(known.communication_seconds)
        if row.action == "forward":
            forward += seconds
        elif row.action == "backward":
            backward += seconds
        elif row.action == "update_dw":
            update += seconds
        else:
            exchange[0] = exchange.get(0, 0.0) + seconds
        layers[row.number] = TracedLayer(row.layer, forward, backward, 0.0, exchange)
    ordered = tuple(layers[number] for number in sorted(layers))
    warnings = ["PyDTNN traces have no gradient sizes: the replay sends nothing"]
    if unread:
        warnings.append(f"lines not understood: {unread}")
    return LayerTrace(ordered, path.stem, update_seconds=update, warnings=tuple(warnings))


def _leaf_rows(path: Path) -> tuple[list[EventRow], int, int]:
    """Rows of layers without children, number of training steps, and unread lines."""
    rows: list[EventRow] = []
    unread = 0
    for line in read_lines(path):
        row = _row(line.text)
        if row is not None and len(rows) < MOST_ROWS:
            rows.append(row)
        elif row is None and not line.text.startswith(("Event type;", "Operations;")):
            unread += bool(line.text)
    steps = max((row.calls for row in rows if row.action == "backward"), default=0)
    steps = steps or max((row.calls for row in rows if row.action == "forward"), default=1)
    blocks = _composite(rows)
    return [row for row in rows if row.number not in blocks], max(1, steps), unread


def _row(text: str) -> EventRow | None:
    fields = text.split(";")
    if len(fields) != 6 or fields[0] != "Model":
        return None
    match = _EVENT.match(fields[2])
    calls, total = count(fields[3]), finite(fields[4])
    if match is None or calls is None or total is None or not 0 <= total < 1e9:
        return None
    return EventRow(int(match[1]), f"{match[1]}_{match[2]}", match[3], calls, total)


def _composite(rows: Sequence[EventRow]) -> set[int]:
    """Numbers of blocks, whose times include those of their layers.

    A row is written when its event first ends: in the forward pass a block's row comes after
    its layers' rows although its number is lower.
    """
    blocks: set[int] = set()
    highest = 0
    for row in rows:
        if row.action == "forward":
            if row.number < highest:
                blocks.add(row.number)
            highest = max(highest, row.number)
    return blocks
