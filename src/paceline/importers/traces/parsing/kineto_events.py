"""Host and device events of a PyTorch trace, and the sizes of its messages."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod
from typing import Any

from paceline.importers.traces.parsing.spans import Span
from paceline.importers.traces.parsing.trace_events import ChromeEvent
from paceline.step import Phase

MICROSECOND = 1e-6
BACKWARD_PREFIX = "autograd::engine::evaluate_function"
DEVICE_CATEGORIES = frozenset({"kernel", "gpu_memcpy", "gpu_memset"})

LONGEST_NAME = 60
LONGEST_RANKS = 2000
_UNNAMED_GROUPS = frozenset({"", "undefined", "default_pg"})
_STEP = re.compile(r"ProfilerStep#(\d+)")


@dataclass(frozen=True, slots=True)
class Interval:
    """A time interval on one host thread, in seconds."""

    start: float
    end: float
    thread: str


@dataclass
class Host:
    """Host events: intervals that determine the phase of operations and kernels."""

    steps: list[tuple[int, Interval]] = field(default_factory=list)
    update: list[Interval] = field(default_factory=list)
    input: list[Interval] = field(default_factory=list)
    backward: list[Interval] = field(default_factory=list)
    operations: list[tuple[str, Interval]] = field(default_factory=list)
    messages: list[Span] = field(default_factory=list)
    launches: dict[int, Interval] = field(default_factory=dict)

    def sort(self) -> None:
        """Sort everything by start time."""
        for intervals in (self.update, self.input, self.backward):
            intervals.sort(key=lambda interval: interval.start)
        self.operations.sort(key=lambda operation: operation[1].start)
        self.messages.sort(key=lambda span: span.start)

    @property
    def size(self) -> int:
        """Number of stored events."""
        return len(self.operations) + len(self.messages) + len(self.launches)


@dataclass(frozen=True, slots=True)
class DeviceActivity:
    """One kernel or copy on a GPU stream; ``correlation`` identifies its launch call.

    Messages have the process ``group``, if the trace names it.
    """

    name: str
    category: str
    stream: str
    start: float
    end: float
    correlation: int
    size_bytes: float
    is_message: bool = False
    group: str = ""


def add_host_event(host: Host, event: ChromeEvent) -> None:
    """Classify and store one complete host event."""
    name = event.name
    start = event.start * MICROSECOND
    interval = Interval(start, start + event.duration * MICROSECOND, event.thread)
    step = _STEP.match(name)
    if event.category == "user_annotation" and step is not None:
        host.steps.append((int(step[1][:9]), interval))
    elif event.category == "user_annotation" and name.startswith("Optimizer.step"):
        host.update.append(interval)
    elif event.category == "user_annotation" and name.startswith("enumerate(DataLoader)"):
        host.input.append(interval)
    elif name.startswith("gloo:") or (name.startswith("mpi:") and event.category != "cpu_op"):
        host.messages.append(
            Span(
                name,
                Phase.COMMUNICATE,
                "network",
                interval.start,
                interval.end,
                size_bytes=message_bytes(event.arguments),
            )
        )
    elif event.category in ("cuda_runtime", "cuda_driver", "hip_runtime"):
        correlation = event.arguments.get("correlation")
        if isinstance(correlation, int):
            host.launches[correlation] = interval
    elif event.category in ("cpu_op", "Operator") and not name.startswith("c10d::"):
        # c10d:: spans last until the message has arrived: they are not work of this thread
        if name.startswith(BACKWARD_PREFIX):
            host.backward.append(interval)
        host.operations.append((name, interval))


def device_activity(event: ChromeEvent) -> DeviceActivity:
    """Convert one complete event of a GPU stream."""
    correlation = event.arguments.get("correlation", -1)
    start = event.start * MICROSECOND
    is_message = "nccl" in event.name.lower()
    collective = event.arguments.get("Collective name") if is_message else None
    return DeviceActivity(
        collective if isinstance(collective, str) and collective else event.name,
        event.category,
        str(event.arguments.get("stream", event.thread)),
        start,
        start + event.duration * MICROSECOND,
        correlation if isinstance(correlation, int) else -1,
        message_bytes(event.arguments) if is_message else 0.0,
        is_message,
        _group(event.arguments) if is_message else "",
    )


def _group(arguments: Mapping[str, object]) -> str:
    """Name and members of a process group; empty for the default group."""
    name = arguments.get("Process Group Description")
    if not isinstance(name, str) or name in _UNNAMED_GROUPS:
        return ""
    members = re.findall(r"\d{1,7}", str(arguments.get("Process Group Ranks", ""))[:LONGEST_RANKS])
    return f"{' '.join(name.split())[:LONGEST_NAME]} {','.join(members)}".strip()


_BYTES = {
    "float": 4,
    "float32": 4,
    "int": 4,
    "int32": 4,
    "double": 8,
    "float64": 8,
    "long": 8,
    "int64": 8,
    "long int": 8,
    "half": 2,
    "float16": 2,
    "bfloat16": 2,
    "c10::half": 2,
    "c10::bfloat16": 2,
    "byte": 1,
    "unsigned char": 1,
    "int8": 1,
    "uint8": 1,
    "char": 1,
    "bool": 1,
}
LARGEST_MESSAGE = 1e15


def message_bytes(arguments: dict[str, Any]) -> float:
    """Bytes of the message; 0.0 if unknown.

    NCCL events have the number of elements and their type; others have the shapes of their
    inputs when the profiler ran with ``record_shapes=True``.
    """
    elements = arguments.get("In msg nelems")
    width = _BYTES.get(str(arguments.get("dtype", "")).lower())
    if isinstance(elements, int) and not isinstance(elements, bool) and width:
        return _bounded(float(elements) * width if elements < 1e15 else 0.0)
    shapes, types = arguments.get("Input Dims"), arguments.get("Input type")
    if isinstance(shapes, list) and isinstance(types, list):
        return _bounded(_shapes_bytes(shapes, types))
    return 0.0


def _shapes_bytes(shapes: list[Any], types: list[Any]) -> float:
    total = 0.0
    for shape, kind in zip(shapes[:1000], types, strict=False):
        if isinstance(shape, list) and shape and isinstance(kind, list):
            total += _shapes_bytes(shape, kind)
        elif isinstance(shape, list) and shape and all(_is_size(size) for size in shape):
            total += prod(shape[:10]) * _BYTES.get(str(kind).lower(), 0)
    return total


def _is_size(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 10**12


def _bounded(size: float) -> float:
    return size if 0 <= size < LARGEST_MESSAGE else 0.0
