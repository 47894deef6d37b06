"""Times of a step without its tasks: of one step, or of arrays of them at once."""

from collections.abc import Callable
from typing import Any

import numpy as np

from paceline.predictor.step_builder import (
    COMPUTE,
    COPIES_LINK,
    NETWORK,
    StepTelling,
    interfered_seconds,
)
from paceline.predictor.step_costs import Seconds, takes_time
from paceline.step import Phase


class StepClocks:
    """A step told as to a `StepBuilder`, of which only clocks are kept.

    Seconds are numbers, or arrays that broadcast against each other: a configuration each. Names
    and sizes are not looked at.
    """

    def __init__(self, interference: float = 0.0) -> None:
        self.interference = interference
        self._announced_seconds = 0.0
        self._burst = _Burst(0.0, 0.0, 0.0)
        self._is_stale = False
        self._placed: list[tuple[_Burst | None, Any]] = []
        self._free: dict[str, Any] = {}

    @property
    def seconds(self) -> Seconds:
        """When everything has ended."""
        end = self._burst.end
        for free in self._free.values():
            end = later(end, free)
        return end

    def compute(
        self,
        name: str,
        phase: Phase,
        seconds: Seconds,
        after: tuple[int, ...] = (),
        layer: str = "",
    ) -> int:
        """Work on the device, in order; stretched while the network is busy."""
        if after or self._is_stale:
            self._begin(after)
        self._burst.work = self._burst.work + seconds
        self._placed.append((self._burst, self._burst.work))
        return len(self._placed) - 1

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
        self._is_stale = self._is_stale or lane in (NETWORK, COPIES_LINK)
        return self._place(lane, seconds, after)

    def beside(
        self, name: str, phase: Phase, seconds: Seconds, after: tuple[int, ...] = ()
    ) -> int:
        """Work on a lane of its phase's own, in order."""
        return self._place(str(phase), seconds, after)

    def earlier_micro_batches(
        self, count: Seconds, forward: Seconds, backward: Seconds, scatter: Seconds
    ) -> None:
        """So many micro-batches; each scatters its gradients beside the next one.

        The first computes alone, each further one under the message of the one before. What
        does not fit under it queues up.
        """
        work = forward + backward
        if not takes_time(scatter):
            self.compute("", Phase.OTHER, count * work)
            return
        slower = 1.0 + self.interference
        hidden = np.minimum(slower * work, scatter)
        further = np.maximum(count - 1.0, 0.0)
        stretched = further * hidden * self.interference / slower
        end = self._burst.end + count * work + stretched
        queued = scatter + further * (scatter - hidden)
        self._free[NETWORK] = np.where(count > 0, end + queued, self.free_at(NETWORK))
        self._burst = _Burst(end, 0.0, 0.0)
        self._is_stale = True

    def repeat(self, tell: Callable[[StepTelling], None], times: Seconds) -> tuple[int, ...]:
        """A whole step of its own so many times; what messages behind it wait for."""
        told = StepClocks(self.interference)
        tell(told)
        end = self._burst.end + times * told.seconds
        self._burst = _Burst(end, 0.0, 0.0)
        self._is_stale = True
        self._placed.append((None, np.where(times > 0, end, 0.0)))
        return (len(self._placed) - 1,)

    def announce(self, seconds: float) -> None:
        """Messages of so many seconds more (or less) wait for the network, not yet placed."""
        self._announced_seconds += seconds
        self._is_stale = True

    def occupy(self, lane: str, until: Seconds) -> None:
        """Let a lane be busy with what is not told, seconds from the beginning of the step."""
        self._free[lane] = until
        self._is_stale = True

    def free_at(self, lane: str) -> Seconds:
        """When a lane has finished everything placed so far, seconds."""
        return self._burst.end if lane == COMPUTE else self._free.get(lane, 0.0)

    def end_of(self, placed: int) -> Seconds:
        """When something placed ends, seconds."""
        burst, value = self._placed[placed]
        return value if burst is None else burst.end_of(value)

    def _place(self, lane: str, seconds: Seconds, after: tuple[int, ...]) -> int:
        start = self._free.get(lane, 0.0)
        for placed in after:
            start = later(start, self.end_of(placed))
        self._free[lane] = start + seconds
        self._placed.append((None, self._free[lane]))
        return len(self._placed) - 1

    def _begin(self, after: tuple[int, ...]) -> None:
        """Further computing waits for something, or meets another network."""
        start = self._burst.end
        for placed in after:
            start = later(start, self.end_of(placed))
        busy: Seconds = 0.0
        if self.interference > 0:
            free = self._free.get(NETWORK, 0.0)
            if COPIES_LINK in self._free:
                free = later(free, self._free[COPIES_LINK])
            busy = free + self._announced_seconds - start
        self._burst = _Burst(start, busy, self.interference)
        self._is_stale = False


class _Burst:
    """Computing that nothing interrupts: from ``start``, the network busy for ``busy`` seconds."""

    def __init__(self, start: Seconds, busy: Seconds, interference: float) -> None:
        self.start = start
        self.busy = busy
        self.interference = interference
        self.work: Seconds = 0.0
        self._known: tuple[Seconds, Seconds] | None = None

    @property
    def end(self) -> Seconds:
        """When all of it is done."""
        return self.end_of(self.work)

    def end_of(self, work: Seconds) -> Seconds:
        """When so much of it is done."""
        if self._known is None or self._known[0] is not work:
            self._known = work, self.start + _interfered(work, self.busy, self.interference)
        return self._known[1]


def later(one: Seconds, other: Seconds) -> Seconds:
    """The later of two times, of numbers or arrays."""
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return np.maximum(one, other)
    return one if one > other else other


def _interfered(work: Seconds, busy: Seconds, interference: float) -> Seconds:
    """`interfered_seconds` of numbers or arrays."""
    if not isinstance(busy, np.ndarray) and not isinstance(work, np.ndarray):
        return interfered_seconds(work, busy, interference)
    if interference <= 0:
        return work
    slowed = np.asarray(busy * (interference / (1.0 + interference)))
    np.maximum(slowed, 0.0, out=slowed)
    return np.minimum(slowed, interference * work) + work
