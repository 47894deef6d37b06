"""Host and device events of a PyTorch trace."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from paceline.importers.traces.parsing.events import ChromeEvent
from paceline.importers.traces.parsing.message_size import message_bytes
from paceline.importers.traces.parsing.spans import Span
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
