"""Events of a PyTorch trace sorted into what the host did and what the device did."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from paceline.measurement.traces.events import ChromeEvent
from paceline.measurement.traces.message_size import message_bytes
from paceline.measurement.traces.spans import Span
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
    """A stretch of host time on one thread, seconds."""

    start: float
    end: float
    thread: str


@dataclass
class Host:
    """What the host did: the intervals by which operations and kernels find their phase."""

    steps: list[tuple[int, Interval]] = field(default_factory=list)
    update: list[Interval] = field(default_factory=list)
    input: list[Interval] = field(default_factory=list)
    backward: list[Interval] = field(default_factory=list)
    operations: list[tuple[str, Interval]] = field(default_factory=list)
    messages: list[Span] = field(default_factory=list)
    launches: dict[int, Interval] = field(default_factory=dict)

    def sort(self) -> None:
        """Put everything in order of its start."""
        for intervals in (self.update, self.input, self.backward):
            intervals.sort(key=lambda interval: interval.start)
        self.operations.sort(key=lambda operation: operation[1].start)
        self.messages.sort(key=lambda span: span.start)

    @property
    def size(self) -> int:
        """How many events were kept."""
        return len(self.operations) + len(self.messages) + len(self.launches)


@dataclass(frozen=True, slots=True)
class DeviceActivity:
    """One kernel or copy on a GPU stream; ``correlation`` leads to the call that launched it.

    Messages have the ``group`` of ranks that exchanges them, where the trace names it.
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
    """File one complete event of the host under what it is about."""
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
        # c10d:: spans last until the message has arrived: they are no work of this thread
        if name.startswith(BACKWARD_PREFIX):
            host.backward.append(interval)
        host.operations.append((name, interval))


def device_activity(event: ChromeEvent) -> DeviceActivity:
    """One complete event of a GPU stream."""
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
    """Name and members of a group of ranks; empty for the group of all."""
    name = arguments.get("Process Group Description")
    if not isinstance(name, str) or name in _UNNAMED_GROUPS:
        return ""
    members = re.findall(r"\d{1,7}", str(arguments.get("Process Group Ranks", ""))[:LONGEST_RANKS])
    return f"{' '.join(name.split())[:LONGEST_NAME]} {','.join(members)}".strip()
