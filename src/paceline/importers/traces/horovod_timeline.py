"""Horovod timelines: a "process" per tensor, with negotiation and exchange as seen by rank 0."""

import re
from collections import Counter
from dataclasses import dataclass, field
from math import prod
from pathlib import Path

from paceline.importers.traces.parsing.parsed_trace import STARTUP_LABEL, ParsedTrace
from paceline.importers.traces.parsing.spans import MOST_SPANS, Span, measured_step
from paceline.importers.traces.parsing.trace_events import ChromeEvent, ChromeTrace
from paceline.step import Phase, Step
from paceline.step.breakdown import merge

MICROSECOND = 1e-6

_OPERATION = re.compile(r"^(?:ALLREDUCE|ALLGATHER|BROADCAST|ALLTOALL|REDUCESCATTER|ADASUM)$")
_DTYPE_BYTES = {"float16": 2, "bfloat16": 2, "float32": 4, "float64": 8}
_DTYPE_BYTES |= {"uint8": 1, "int8": 1, "bool": 1, "uint16": 2, "int16": 2, "int32": 4, "int64": 8}


@dataclass(frozen=True, slots=True)
class TensorExchange:
    """One collective of one tensor; times in seconds."""

    tensor: str
    operation: str
    start: float
    end: float
    ready_from: float
    size_bytes: float
    last_rank: int | None


@dataclass
class _Tensor:
    """State of a tensor: open events, first ready time, last ready rank."""

    name: str
    open: list[tuple[str, float]] = field(default_factory=list)
    ready_from: float | None = None
    last_rank: int | None = None
    exchanges: int = 0


def read_horovod_timeline(path: Path) -> ParsedTrace:
    """Steps as seen by rank 0: one message per fusion buffer, and waits for other ranks.

    The n-th all-reduce of a tensor belongs to the n-th step; broadcasts belong to the start-up.
    """
    trace = ChromeTrace(path)
    reading = _Reading()
    for event in trace:
        reading.add(event)
    steps = _steps(reading.exchanges)
    warnings = []
    if reading.unclosed:
        warnings.append(f"truncated; operations in flight at the end: {reading.unclosed}")
    if reading.exchanges and not any(step.label != STARTUP_LABEL for step in steps):
        warnings.append("the trace contains the initial broadcasts but no training step")
    ranks = max(reading.ranks, default=-1) + 1
    facts: dict[str, str | float] = {"tensors": float(len(reading.tensors))}
    return ParsedTrace(
        "horovod",
        tuple(steps),
        ranks or None,
        trace.unread + reading.unread,
        tuple(warnings),
        facts,
    )


class _Reading:
    """Collects the exchanges of each tensor from its B and E events."""

    def __init__(self) -> None:
        self.tensors: dict[str, _Tensor] = {}
        self.exchanges: dict[int, list[TensorExchange]] = {}
        self.ranks: Counter[int] = Counter()
        self.unread = 0
        self._kept = 0

    @property
    def unclosed(self) -> int:
        """Number of tensors with an operation in flight at the end."""
        return sum(bool(tensor.open) for tensor in self.tensors.values())

    def add(self, event: ChromeEvent) -> None:
        if event.phase == "M":
            name = event.arguments.get("name")
            if event.name == "process_name" and isinstance(name, str):
                self._tensor(event.process).name = name[:200]
            return
        if event.phase not in ("B", "E", "X"):
            return
        moment = event.start * MICROSECOND
        tensor = self._tensor(event.process)
        if event.phase == "B" and len(tensor.open) < 100:
            if event.name.startswith("NEGOTIATE_"):
                tensor.ready_from = moment
            tensor.open.append((event.name, moment))
        # During the negotiation, an event named after each rank marks that it is ready.
        elif event.phase == "X" and event.name.isdecimal() and len(event.name) < 8:
            tensor.last_rank = int(event.name)
            self.ranks[int(event.name)] += 1
        elif event.phase == "E":
            self._close(tensor, moment, _tensor_bytes(event))

    def _tensor(self, process: str) -> _Tensor:
        if process not in self.tensors and len(self.tensors) < MOST_SPANS:
            self.tensors[process] = _Tensor(process)
        return self.tensors.get(process) or _Tensor(process)

    def _close(self, tensor: _Tensor, moment: float, size: float) -> None:
        if not tensor.open:
            self.unread += 1
            return
        name, start = tensor.open.pop()
        if not _OPERATION.match(name) or moment < start or self._kept >= MOST_SPANS:
            return
        ready = start if tensor.ready_from is None else min(start, tensor.ready_from)
        exchange = TensorExchange(tensor.name, name, start, moment, ready, size, tensor.last_rank)
        # Parameters are broadcast once, before the first step.
        step = -1 if name == "BROADCAST" else tensor.exchanges
        tensor.exchanges += name != "BROADCAST"
        tensor.ready_from = tensor.last_rank = None
        self.exchanges.setdefault(step, []).append(exchange)
        self._kept += 1


def _steps(exchanges: dict[int, list[TensorExchange]]) -> list[Step]:
    begins = {step: min(exchange.ready_from for exchange in own) for step, own in exchanges.items()}
    steps: list[Step] = []
    for number in sorted(exchanges):
        spans = _spans(exchanges[number])
        late = Counter(
            exchange.last_rank for exchange in exchanges[number] if exchange.last_rank is not None
        )
        metadata: dict[str, str | float] = {"view": "rank 0"}
        if number >= 0 and number + 1 in begins and begins[number + 1] > begins[number]:
            metadata["period_seconds"] = begins[number + 1] - begins[number]
        if late:
            metadata["most_often_last_rank"] = float(late.most_common(1)[0][0])
        label = STARTUP_LABEL if number < 0 else f"step {number}"
        steps.append(measured_step({0: spans}, label, metadata=metadata))
    return steps


def _spans(exchanges: list[TensorExchange]) -> list[Span]:
    """One span per group of fused tensors, and the waits for other ranks."""
    spans: list[Span] = []
    waits: list[tuple[float, float]] = []
    for number, group in enumerate(_fused(exchanges)):
        start, end = (
            min(exchange.start for exchange in group),
            max(exchange.end for exchange in group),
        )
        waits.append((min(exchange.ready_from for exchange in group), start))
        name = group[0].operation.lower()
        spans.append(
            Span(
                f"{name} of {len(group)}" if len(group) > 1 else f"{name} {group[0].tensor}",
                Phase.COMMUNICATE,
                "network",
                start,
                end,
                f"bucket {number}",
                sum(exchange.size_bytes for exchange in group),
            )
        )
    spans.extend(
        Span("negotiate", Phase.WAIT, "negotiation", start, end)
        for start, end in merge([wait for wait in waits if wait[0] < wait[1]])
    )
    return spans


def _fused(exchanges: list[TensorExchange]) -> list[list[TensorExchange]]:
    """Group overlapping operations: Horovod runs responses in sequence, so overlap means fusion."""
    ordered = sorted(exchanges, key=lambda exchange: exchange.start)
    intervals = merge([(exchange.start, exchange.end) for exchange in ordered])
    groups: list[list[TensorExchange]] = [[] for _ in intervals]
    position = 0
    for exchange in ordered:
        while exchange.start > intervals[position][1]:
            position += 1
        groups[position].append(exchange)
    return [group for group in groups if group]


def _tensor_bytes(event: ChromeEvent) -> float:
    """Bytes of a tensor by dtype and shape of its end event; 0.0 if missing."""
    width = _DTYPE_BYTES.get(str(event.arguments.get("dtype", "")))
    shape = str(event.arguments.get("shape", ""))[:200]
    sizes = [int(size) for size in re.findall(r"\d{1,12}", shape)[:12]]
    total = float(prod(sizes)) * width if width and shape else 0.0
    return total if total < 1e15 else 0.0
