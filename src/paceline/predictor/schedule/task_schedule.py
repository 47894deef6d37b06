"""The protocol of schedules, and the backend that lists tasks.

A step is described once as calls of a `ScheduleBackend`. `TaskSchedule` turns them into tasks of a
timeline, `ArraySchedule` (`paceline.predictor.schedule.array_schedule`) into times alone, of one
step or of arrays of steps.
"""

from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np

from paceline.predictor.schedule.step_costs import Seconds
from paceline.step import Phase, Step, Task, breakdown
from paceline.step.schedule import Timetable

COMPUTE = "compute"
NETWORK = "network"
HSDP_REPLICATE_LINK = "network of copies"
"""Lane of sums among copies of shards (HSDP), if no other messages use their links."""
REPLICA_LINK = "replica link"
"""Lane of messages between the devices of one replica."""


class WholePass(NamedTuple):
    """A pass through all layers: seconds of computing and of exposed exchanges."""

    work: Seconds
    exchange: Seconds


class ScheduleBackend(Protocol):
    """Operations of a step. Return values are handles for later operations to wait for."""

    def compute(
        self,
        name: str,
        phase: Phase,
        seconds: Seconds,
        after: tuple[int, ...] = (),
        layer: str = "",
    ) -> int:
        """Work on the device, in order; slowed down while the network is busy."""

    def send(
        self,
        name: str,
        seconds: Seconds,
        size_bytes: float,
        after: tuple[int, ...] = (),
        layer: str = "",
        lane: str = NETWORK,
    ) -> int:
        """A message on a link, in order."""

    def exchange(self, seconds: Seconds, layer: str, after: int, lane: str = REPLICA_LINK) -> int:
        """Messages within the replica, which the device waits for."""

    def run_async(
        self, name: str, phase: Phase, seconds: Seconds, after: tuple[int, ...] = ()
    ) -> int:
        """Work on a separate lane of its phase, in order."""

    def earlier_micro_batches(
        self, count: Seconds, forward: WholePass, backward: WholePass, scatter: Seconds
    ) -> None:
        """All micro-batches but the last; each scatters its gradients during the next one."""

    def accumulate(
        self, schedule: "Callable[[ScheduleBackend], None]", times: Seconds
    ) -> tuple[int, ...]:
        """Gradient accumulation: ``times`` whole steps; returns what later messages await."""

    def enqueue(self, seconds: float) -> None:
        """Add a message of ``seconds`` to the queue of the network, not yet scheduled."""

    def dequeue(self, seconds: float) -> None:
        """Remove a message of ``seconds`` from the queue."""

    def free_at(self, lane: str) -> Seconds:
        """End of everything scheduled on a lane so far, in seconds."""

    def end_of(self, placed: int) -> Seconds:
        """End of a scheduled item, in seconds."""


def interfered_seconds(work_seconds: float, busy_seconds: float, interference: float) -> float:
    """Seconds of computing while a link is busy for the first ``busy_seconds`` of it.

    Messages in flight use memory bandwidth, copy engines and streaming multiprocessors: while the
    link is busy, work of 1 s takes ``1 + interference`` seconds.
    """
    if interference <= 0 or busy_seconds <= 0:
        return work_seconds
    slowed = busy_seconds / (1.0 + interference)
    return work_seconds + interference * min(work_seconds, slowed)


def accumulated_scatters(
    count: Seconds,
    forward: WholePass,
    backward: WholePass,
    scatter: Seconds,
    interference: float,
) -> tuple[Seconds, Seconds, Seconds]:
    """Time of ``count`` micro-batches, hidden messages, and messages queued at the end, in seconds.

    Each micro-batch scatters its gradients during the next one. All are equal, so the overlap of
    each but the first is the same, and messages that do not fit queue up linearly.
    """
    work, exchanged = forward.work + backward.work, forward.exchange + backward.exchange
    slower = 1.0 + interference
    further = np.maximum(count - 1.0, 0.0)
    under_forward = np.minimum(slower * forward.work, scatter)
    left = np.maximum(scatter - under_forward - forward.exchange, 0.0)
    hidden = under_forward + np.minimum(slower * backward.work, left)
    queued = further * np.maximum(scatter - slower * work - exchanged, 0.0)
    return count * (work + exchanged), further * hidden, queued


class TaskSchedule(Timetable):
    """A timetable whose computing is slowed down by messages in flight.

    Compute tasks are stretched by ``interference`` for as long as the network of their rank is
    busy when they start. This is exact if every message that can be in flight by then has been
    scheduled or enqueued.
    """

    def __init__(self, interference: float = 0.0) -> None:
        super().__init__()
        self.interference = interference
        self._queued, self._queued_seconds, self._queued_at = 0, 0.0, 0.0

    def compute(
        self,
        name: str,
        phase: Phase,
        seconds: float,
        after: tuple[int, ...] = (),
        layer: str = "",
        rank: int = 0,
    ) -> int:
        if self.interference > 0:
            start = self.start_on((rank, COMPUTE), after)
            free = max(self.free_at(NETWORK, rank), self.free_at(HSDP_REPLICATE_LINK, rank))
            if self._queued:
                free = max(free, self._queued_at) + self._queued_seconds
            seconds = interfered_seconds(seconds, free - start, self.interference)
        return self.add(Task(name, phase, COMPUTE, seconds, after, rank, layer))

    def send(
        self,
        name: str,
        seconds: Seconds,
        size_bytes: float,
        after: tuple[int, ...] = (),
        layer: str = "",
        lane: str = NETWORK,
        rank: int = 0,
    ) -> int:
        return self.add(
            Task(name, Phase.COMMUNICATE, lane, float(seconds), after, rank, layer, size_bytes)
        )

    def run_async(
        self, name: str, phase: Phase, seconds: float, after: tuple[int, ...] = ()
    ) -> int:
        return self.add(Task(name, phase, str(phase), seconds, after))

    def exchange(self, seconds: float, layer: str, after: int, lane: str = REPLICA_LINK) -> int:
        sent = self.send(f"exchange {layer}", seconds, 0.0, (after,), layer, lane)
        return self.compute(f"wait {layer}", Phase.WAIT, 0.0, (sent,), layer)

    def earlier_micro_batches(
        self, count: int, forward: WholePass, backward: WholePass, scatter: float
    ) -> None:
        """``count`` micro-batches, one task per pass; reduce-scatters overlap the next one."""
        for number in range(count):
            self._pass(f"forward {number}", Phase.FORWARD, forward)
            ready = self._pass(f"backward {number}", Phase.BACKWARD, backward)
            if scatter > 0:
                self.send(f"reduce-scatter {number}", scatter, 0.0, (ready,))

    def _pass(self, name: str, phase: Phase, own: WholePass) -> int:
        done = self.compute(name, phase, own.work)
        return self.exchange(own.exchange, name, done) if own.exchange > 0 else done

    def accumulate(
        self, schedule: Callable[[ScheduleBackend], None], times: int
    ) -> tuple[int, ...]:
        """Gradient accumulation as aggregated tasks: exposed time by phase, and hidden messages."""
        if times < 1:
            return ()
        inner = TaskSchedule(self.interference)
        schedule(inner)
        one = inner.build()
        parts = breakdown(one)
        within = min(_busy(one, REPLICA_LINK)[0], parts.exposed_communication_seconds)
        busy, size = _busy(one, NETWORK, HSDP_REPLICATE_LINK)
        busy = busy or 1.0
        exposed = parts.exposed_communication_seconds - within
        hidden = parts.hidden_communication_seconds
        name = f"{times} earlier micro-batches"
        done = self.add(Task(name, Phase.WAIT, COMPUTE, 0.0))
        for lane, seconds in ((REPLICA_LINK, within), (NETWORK, exposed)):
            sent = size * seconds / busy if lane == NETWORK else 0.0
            done = self.send(name, times * seconds, times * sent, (done,), lane=lane)
        self.send(name, times * hidden, times * size * hidden / busy, (done,))
        for phase, seconds in parts.exposed.items():
            if phase is not Phase.COMMUNICATE:
                done = self.add(Task(name, phase, COMPUTE, times * seconds, (done,)))
        return (done,)

    def enqueue(self, seconds: float) -> None:
        self._queued_at = self._queued_at if self._queued else self.free_at(COMPUTE)
        self._queued += 1
        self._queued_seconds += seconds

    def dequeue(self, seconds: float) -> None:
        self._queued -= 1
        self._queued_seconds -= seconds


def _busy(step: Step, *lanes: str) -> tuple[float, float]:
    """Total seconds and bytes on some lanes."""
    tasks = [task for lane in lanes for task, _ in step.on(lane)]
    return sum(task.seconds for task in tasks), sum(task.size_bytes for task in tasks)


_DEVICE, _LINK, _COPIES = (0, COMPUTE), (0, NETWORK), (0, HSDP_REPLICATE_LINK)


class NumberSchedule(TaskSchedule):
    """Clocks of the lanes of one device; seconds are numbers."""

    @property
    def seconds(self) -> float:
        """End of the step, in seconds."""
        return max(self._free.values(), default=0.0)

    def compute(
        self,
        name: str,
        phase: Phase,
        seconds: float,
        after: tuple[int, ...] = (),
        layer: str = "",
        rank: int = 0,
    ) -> int:
        # Called for every layer of every schedule, hence the inlined comparisons.
        lanes, ends = self._free, self._ends
        start = lanes.get(_DEVICE, 0.0)
        for task in after:
            start = max(start, ends[task])
        if seconds > 0 and self.interference > 0:
            free = max(lanes.get(_LINK, 0.0), lanes.get(_COPIES, 0.0))
            if self._queued:
                free = max(free, self._queued_at) + self._queued_seconds
            if free > start:
                seconds = interfered_seconds(seconds, free - start, self.interference)
        lanes[_DEVICE] = start + seconds
        ends.append(start + seconds)
        return len(ends) - 1

    def send(
        self,
        name: str,
        seconds: Seconds,
        size_bytes: float,
        after: tuple[int, ...] = (),
        layer: str = "",
        lane: str = NETWORK,
        rank: int = 0,
    ) -> int:
        key = (0, lane)
        return self._end(key, self.start_on(key, after) + float(seconds))

    def exchange(self, seconds: float, layer: str, after: int, lane: str = REPLICA_LINK) -> int:
        key = (0, lane)
        end = self._free[key] = max(self._free.get(key, 0.0), self._ends[after]) + seconds
        return self._end(_DEVICE, max(self._free.get(_DEVICE, 0.0), end))

    def run_async(
        self, name: str, phase: Phase, seconds: float, after: tuple[int, ...] = ()
    ) -> int:
        return self.send(name, seconds, 0.0, after, lane=str(phase))

    def earlier_micro_batches(
        self, count: int, forward: WholePass, backward: WholePass, scatter: float
    ) -> None:
        """``count`` equal micro-batches at once; reduce-scatters overlap the next one."""
        worked, hidden, queued = accumulated_scatters(
            count, forward, backward, scatter, self.interference
        )
        stretched = self.interference / (1.0 + self.interference) * hidden
        done = self._end(_DEVICE, self.start_on(_DEVICE, ()) + worked + stretched)
        if scatter > 0:
            self._free[_LINK] = self.end_of(done) + scatter + queued

    def accumulate(
        self, schedule: Callable[[ScheduleBackend], None], times: int
    ) -> tuple[int, ...]:
        inner = NumberSchedule(self.interference)
        schedule(inner)
        return (self._end(_DEVICE, self.start_on(_DEVICE, ()) + times * inner.seconds),)

    def _end(self, lane: tuple[int, str], end: float) -> int:
        """Record the end of an item on a lane; returns its handle."""
        self._free[lane] = end
        self._ends.append(end)
        return len(self._ends) - 1
