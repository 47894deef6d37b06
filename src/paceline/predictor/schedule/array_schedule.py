"""Times of a step without its tasks: of one step, or of arrays of steps at once.

Only two numbers are kept from message to message: how long the network is still busy when the
device reaches that point, and how long messages were in flight during computing. This needs a
fraction of the arithmetic of start and end times and gives the same result: property tests compare
it with `TaskSchedule` to 1e-9 (tests/predictor/schedule/test_array_schedule.py).
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from paceline.predictor.schedule.message_overlap import OverlapState, Stretch, is_nothing, later
from paceline.predictor.schedule.step_costs import Seconds, takes_time
from paceline.predictor.schedule.task_schedule import (
    COMPUTE,
    HSDP_REPLICATE_LINK,
    NETWORK,
    REPLICA_LINK,
    ScheduleBackend,
    WholePass,
    accumulated_scatters,
)
from paceline.step import Phase

_INTERFERING = (NETWORK, HSDP_REPLICATE_LINK)


class ArraySchedule:
    """A `ScheduleBackend` that keeps clocks only.

    Seconds are numbers, or arrays that broadcast against each other, one entry per configuration.
    Names and sizes are ignored.
    """

    def __init__(self, interference: float = 0.0) -> None:
        self.interference = interference
        self._busy: dict[str, Seconds] = {NETWORK: 0.0}
        self._queued, self._queued_seconds, self._queued_at = 0, 0.0, 0.0
        self._free: dict[str, Seconds] = {}
        self._placed: list[tuple[str, Any]] = []
        self._last_on: dict[str, int] = {}
        self._ends_now: int | None = None
        self._worked: Seconds = 0.0
        self._under_messages: Seconds = 0.0
        self._begin(0.0, 0.0)

    @property
    def seconds(self) -> Seconds:
        """End of the step, in seconds."""
        end = self._now()
        for busy in self._busy.values():
            end = later(end, self._now() + busy)
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
        for placed in self._last_of_lanes(after):
            self._await(placed)
        stretch = self._stretch
        # Work of 0 s ends where the previous work ends: reusing that handle keeps `send` on its
        # cheap path, which compares handles.
        if self._ends_now is None or not is_nothing(seconds):
            stretch.work = stretch.work + seconds
            moment = (stretch, len(stretch.pieces), stretch.work)
            self._ends_now = self._placing(COMPUTE, moment)
        return self._ends_now

    def send(
        self,
        name: str,
        seconds: Seconds,
        size_bytes: float,
        after: tuple[int, ...] = (),
        layer: str = "",
        lane: str = NETWORK,
    ) -> int:
        if lane not in _INTERFERING:
            return self._place(lane, seconds, after)
        waits = self._last_of_lanes(after)
        # A message right after the last work, on the only busy link: record it and evaluate the
        # whole stretch later, vectorised. This covers every bucket of DDP.
        if waits == [self._ends_now] and lane == NETWORK and self._is_simple:
            self._stretch.message(seconds)
            return self._placing(lane, (self._stretch, len(self._stretch.pieces)))
        now = self._now()
        start = self._start(lane, waits)
        self._busy[lane] = later(start + seconds - now, 0.0)
        self._begin(self._worked, self._under_messages)
        return self._placing(lane, start + seconds)

    def run_async(
        self, name: str, phase: Phase, seconds: Seconds, after: tuple[int, ...] = ()
    ) -> int:
        return self._place(str(phase), seconds, after)

    def exchange(self, seconds: Seconds, layer: str, after: int, lane: str = REPLICA_LINK) -> int:
        """Messages within the replica, which the device waits for.

        Their link is always idle at this point because earlier messages were waited for.
        """
        if lane == REPLICA_LINK and after == self._ends_now:
            self._pass(seconds)
            return self.compute("", Phase.WAIT, 0.0)
        sent = self.send("", seconds, 0.0, (after,), "", lane)
        return self.compute("", Phase.WAIT, 0.0, (sent,))

    def earlier_micro_batches(
        self, count: Seconds, forward: WholePass, backward: WholePass, scatter: Seconds
    ) -> None:
        """All micro-batches but the last; each scatters its gradients during the next one.

        The first one computes alone, each further one overlaps the message of the previous one.
        Messages that do not fit queue up.
        """
        work = forward.work + backward.work
        exchanged = forward.exchange + backward.exchange
        if not takes_time(scatter):
            self.compute("", Phase.OTHER, count * work)
            self._pass(count * exchanged)
            return
        self._settle()
        worked, hidden, queued = accumulated_scatters(
            count, forward, backward, scatter, self.interference
        )
        self._ends_now = None
        self._worked = self._worked + worked
        self._under_messages = self._under_messages + hidden
        self.occupy_network(np.where(count > 0, scatter + queued, self._busy[NETWORK]))

    def accumulate(
        self, schedule: Callable[[ScheduleBackend], None], times: Seconds
    ) -> tuple[int, ...]:
        inner = ArraySchedule(self.interference)
        schedule(inner)
        self._pass(times * inner.seconds)
        return (self._placing("", np.where(times > 0, self._now(), 0.0)),)

    def enqueue(self, seconds: float) -> None:
        self._queued_at = self._queued_at if self._queued else self._now()
        self._settle()
        self._queued += 1
        self._queued_seconds += seconds
        self._begin(self._worked, self._under_messages)

    def dequeue(self, seconds: float) -> None:
        self._settle()
        self._queued -= 1
        self._queued_seconds -= seconds
        self._begin(self._worked, self._under_messages)

    def occupy_network(self, seconds: Seconds) -> None:
        """Occupy the network for ``seconds`` from now on with messages outside this schedule."""
        self._placing(NETWORK, self._now() + seconds)
        self._busy[NETWORK] = seconds
        self._begin(self._worked, self._under_messages)

    def free_at(self, lane: str) -> Seconds:
        return self.end_of(self._last_on[lane]) if lane in self._last_on else 0.0

    def end_of(self, placed: int) -> Seconds:
        lane, moment = self._placed[placed]
        if not isinstance(moment, tuple):
            return moment
        stretch, *position = moment
        if lane == COMPUTE:
            count, work = position
            state = stretch.after(count).worked_on(work, stretch.slower)
            return self._time(state.worked, state.under_messages)
        state = stretch.after(*position)
        return self._time(state.worked, state.under_messages) + state.busy

    @property
    def _is_simple(self) -> bool:
        """Whether the network is the only link and its queue is empty."""
        return len(self._busy) == 1 and not self._queued

    def _placing(self, lane: str, moment: Any) -> int:
        self._placed.append((lane, moment))
        self._last_on[lane] = len(self._placed) - 1
        return len(self._placed) - 1

    def _place(self, lane: str, seconds: Seconds, after: tuple[int, ...]) -> int:
        """Schedule on a lane that does not slow down computing."""
        self._free[lane] = self._start(lane, self._last_of_lanes(after)) + seconds
        return self._placing(lane, self._free[lane])

    def _last_of_lanes(self, after: tuple[int, ...]) -> list[int]:
        """The last awaited item of each lane: lanes work in order, so earlier ones are implied."""
        if len(after) < 2:
            return list(after)
        return list({self._placed[placed][0]: placed for placed in sorted(after)}.values())

    def _start(self, lane: str, waits: list[int]) -> Seconds:
        """Earliest start on a lane, in seconds."""
        start = self.free_at(lane)
        for placed in waits:
            start = later(start, self.end_of(placed))
        return start

    def _await(self, placed: int) -> None:
        """Let the device wait for a scheduled item."""
        lane = self._placed[placed][0]
        if lane == COMPUTE:
            return
        self._settle()
        # The last message of a link ends when the link is idle, which is a stored difference;
        # earlier messages need their absolute end.
        if lane in _INTERFERING and placed == self._last_on[lane]:
            self._pass(self._busy[lane])
        else:
            self._pass(later(self.end_of(placed) - self._now(), 0.0))

    def _pass(self, seconds: Seconds) -> None:
        """Advance time while the device is idle."""
        self._settle()
        self._ends_now = None
        for lane, busy in self._busy.items():
            # The identity test avoids an array subtraction when the device waits for this link.
            self._busy[lane] = 0.0 if busy is seconds else later(busy - seconds, 0.0)
        self._begin(self._worked + seconds, self._under_messages)

    def _time(self, worked: Seconds, under_messages: Seconds) -> Seconds:
        """Time after ``worked`` seconds of work, ``under_messages`` of it during messages."""
        if self.interference <= 0:
            return worked
        # ``under_messages`` is wall time; 1 + interference seconds of it contain 1 s of work.
        return worked + (self.interference / (1.0 + self.interference)) * under_messages

    def _now(self) -> Seconds:
        """Time at which the device has finished its work so far."""
        self._settle()
        return self._time(self._worked, self._under_messages)

    def _begin(self, worked: Seconds, under_messages: Seconds) -> None:
        self._worked, self._under_messages = worked, under_messages
        busy = self._busy[NETWORK]
        if HSDP_REPLICATE_LINK in self._busy:
            busy = later(busy, self._busy[HSDP_REPLICATE_LINK])
        if self._queued:
            # Queued messages (priority policy) will follow the current one without a gap, so
            # they slow down computing although their order is not decided yet.
            waiting = later(self.free_at(NETWORK), self._queued_at) + self._queued_seconds
            busy = later(waiting - self._time(worked, under_messages), 0.0)
        start = OverlapState(worked, under_messages, busy)
        self._stretch = Stretch(start, 1.0 + self.interference)

    def _settle(self) -> None:
        """Evaluate the work scheduled since the device last waited."""
        stretch = self._stretch
        if stretch.is_empty:
            return
        end = stretch.end
        if self._is_simple:
            self._busy[NETWORK] = end.busy
        else:
            started = self._time(self._worked, self._under_messages)
            passed = self._time(end.worked, end.under_messages) - started
            for lane, busy in self._busy.items():
                self._busy[lane] = later(busy - passed, 0.0)
        self._begin(end.worked, end.under_messages)
