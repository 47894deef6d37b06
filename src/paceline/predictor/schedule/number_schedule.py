"""Times of one step without its tasks: a `TaskSchedule` that records nothing."""

from collections.abc import Callable

from paceline.predictor.schedule.step_costs import Seconds
from paceline.predictor.schedule.task_schedule import (
    COMPUTE,
    HSDP_REPLICATE_LINK,
    NETWORK,
    REPLICA_LINK,
    ScheduleBackend,
    TaskSchedule,
    WholePass,
    accumulated_scatters,
    interfered_seconds,
)
from paceline.step import Phase

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
        """Work on the device, in order; slowed down while the network is busy."""
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
        """A message on a link, in order."""
        key = (0, lane)
        return self._end(key, self.start_on(key, after) + float(seconds))

    def exchange(self, seconds: float, layer: str, after: int, lane: str = REPLICA_LINK) -> int:
        key = (0, lane)
        end = self._free[key] = max(self._free.get(key, 0.0), self._ends[after]) + seconds
        return self._end(_DEVICE, max(self._free.get(_DEVICE, 0.0), end))

    def run_async(
        self, name: str, phase: Phase, seconds: float, after: tuple[int, ...] = ()
    ) -> int:
        """Work on a separate lane of its phase, in order."""
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
        """Gradient accumulation: ``times`` whole steps; returns what later messages await."""
        inner = NumberSchedule(self.interference)
        schedule(inner)
        return (self._end(_DEVICE, self.start_on(_DEVICE, ()) + times * inner.seconds),)

    def _end(self, lane: tuple[int, str], end: float) -> int:
        """Record the end of an item on a lane; returns its handle."""
        self._free[lane] = end
        self._ends.append(end)
        return len(self._ends) - 1
