"""Times of a step without its tasks: of one step, or of arrays of them at once.

Of a device and its network only differences are kept from message to message: for how long the
network is still busy when the device gets there, and for how long messages were in flight under
computing. That is a fraction of the arithmetic of start and end times, and comes out the same.
"""

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from paceline.predictor.step_builder import (
    COMPUTE,
    COPIES_LINK,
    NETWORK,
    REPLICA_LINK,
    StepTelling,
    WholePass,
)
from paceline.predictor.step_costs import Seconds, takes_time
from paceline.step import Phase

_INTERFERING = (NETWORK, COPIES_LINK)
_BLOCK = 8192
"""Configurations that are worked on at a time: small enough for a processor's cache."""


class StepClocks:
    """A step told as to a `StepBuilder`, of which only clocks are kept.

    Seconds are numbers, or arrays that broadcast against each other: a configuration each. Names
    and sizes are not looked at.
    """

    def __init__(self, interference: float = 0.0) -> None:
        self.interference = interference
        self._busy: dict[str, Seconds] = {NETWORK: 0.0}
        self._announced, self._announced_seconds, self._announced_at = 0, 0.0, 0.0
        self._free: dict[str, Seconds] = {}
        self._placed: list[tuple[str, Any]] = []
        self._last_on: dict[str, int] = {}
        self._ends_now: int | None = None
        self._worked: Seconds = 0.0
        self._under_messages: Seconds = 0.0
        self._begin(0.0, 0.0)

    @property
    def seconds(self) -> Seconds:
        """When everything has ended."""
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
        """Work on the device, in order; stretched while the network is busy."""
        for placed in self._last_of_lanes(after):
            self._await(placed)
        stretch = self._stretch
        if self._ends_now is None or not _is_nothing(seconds):
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
        """A message on a link, in order."""
        if lane not in _INTERFERING:
            return self._place(lane, seconds, after)
        waits = self._last_of_lanes(after)
        if waits == [self._ends_now] and lane == NETWORK and self._is_simple:
            self._stretch.message(seconds)
            return self._placing(lane, (self._stretch, len(self._stretch.pieces)))
        now = self._now()
        start = self._start(lane, waits)
        self._busy[lane] = later(start + seconds - now, 0.0)
        self._begin(self._worked, self._under_messages)
        return self._placing(lane, start + seconds)

    def beside(self, name: str, phase: Phase, seconds: Seconds, after: tuple[int, ...] = ()) -> int:
        """Work on a lane of its phase's own, in order."""
        return self._place(str(phase), seconds, after)

    def exchange(self, seconds: Seconds, layer: str, after: int, lane: str = REPLICA_LINK) -> int:
        """Messages with devices of the same replica, which the device waits for.

        Their own link is free: what it sent before was waited for.
        """
        if lane == REPLICA_LINK and after == self._ends_now:
            self._pass(seconds)
            return self.compute("", Phase.WAIT, 0.0)
        sent = self.send("", seconds, 0.0, (after,), "", lane)
        return self.compute("", Phase.WAIT, 0.0, (sent,))

    def earlier_micro_batches(
        self, count: Seconds, forward: WholePass, backward: WholePass, scatter: Seconds
    ) -> None:
        """So many micro-batches; each scatters its gradients beside the next one.

        The first computes alone, each further one under the message of the one before. What
        does not fit under it queues up.
        """
        work = forward.work + backward.work
        exchanged = forward.exchange + backward.exchange
        if not takes_time(scatter):
            self.compute("", Phase.OTHER, count * work)
            self._pass(count * exchanged)
            return
        self._settle()
        slower = 1.0 + self.interference
        further = np.maximum(count - 1.0, 0.0)
        under_forward = np.minimum(slower * forward.work, scatter)
        left = np.maximum(scatter - under_forward - forward.exchange, 0.0)
        hidden = under_forward + np.minimum(slower * backward.work, left)
        queued = further * np.maximum(scatter - slower * work - exchanged, 0.0)
        self._ends_now = None
        self._worked = self._worked + count * (work + exchanged)
        self._under_messages = self._under_messages + further * hidden
        self.occupy_network(np.where(count > 0, scatter + queued, self._busy[NETWORK]))

    def repeat(self, tell: Callable[[StepTelling], None], times: Seconds) -> tuple[int, ...]:
        """A whole step of its own so many times; what messages behind it wait for."""
        told = StepClocks(self.interference)
        tell(told)
        self._pass(times * told.seconds)
        return (self._placing("", np.where(times > 0, self._now(), 0.0)),)

    def announce(self, seconds: float) -> None:
        """A message of so many seconds waits for the network, not yet placed."""
        self._announced_at = self._announced_at if self._announced else self._now()
        self._settle()
        self._announced += 1
        self._announced_seconds += seconds
        self._begin(self._worked, self._under_messages)

    def withdraw(self, seconds: float) -> None:
        """An announced message of so many seconds waits no longer."""
        self._settle()
        self._announced -= 1
        self._announced_seconds -= seconds
        self._begin(self._worked, self._under_messages)

    def occupy_network(self, seconds: Seconds) -> None:
        """Let the network be busy for so long from now on, with what is not told."""
        self._placing(NETWORK, self._now() + seconds)
        self._busy[NETWORK] = seconds
        self._begin(self._worked, self._under_messages)

    def free_at(self, lane: str) -> Seconds:
        """When a lane has finished everything placed so far, seconds."""
        return self.end_of(self._last_on[lane]) if lane in self._last_on else 0.0

    def end_of(self, placed: int) -> Seconds:
        """When something placed ends, seconds."""
        lane, moment = self._placed[placed]
        if not isinstance(moment, tuple):
            return moment
        stretch, *place = moment
        if lane == COMPUTE:
            count, work = place
            state = stretch.after(count).worked_on(work, stretch.slower)
            return self._time(state.worked, state.under_messages)
        state = stretch.after(*place)
        return self._time(state.worked, state.under_messages) + state.busy

    @property
    def _is_simple(self) -> bool:
        """Whether the network is the only link, and nothing waits for it."""
        return len(self._busy) == 1 and not self._announced

    def _placing(self, lane: str, moment: Any) -> int:
        self._placed.append((lane, moment))
        self._last_on[lane] = len(self._placed) - 1
        return len(self._placed) - 1

    def _place(self, lane: str, seconds: Seconds, after: tuple[int, ...]) -> int:
        """On a lane that does not slow down computing."""
        self._free[lane] = self._start(lane, self._last_of_lanes(after)) + seconds
        return self._placing(lane, self._free[lane])

    def _last_of_lanes(self, after: tuple[int, ...]) -> list[int]:
        """Of what is waited for, that which ends last on each lane: lanes work in order."""
        if len(after) < 2:
            return list(after)
        return list({self._placed[placed][0]: placed for placed in sorted(after)}.values())

    def _start(self, lane: str, waits: list[int]) -> Seconds:
        """When something on a lane can start."""
        start = self.free_at(lane)
        for placed in waits:
            start = later(start, self.end_of(placed))
        return start

    def _await(self, placed: int) -> None:
        """Let the device wait for the end of something."""
        lane = self._placed[placed][0]
        if lane == COMPUTE:
            return
        self._settle()
        if lane in _INTERFERING and placed == self._last_on[lane]:
            self._pass(self._busy[lane])
        else:
            self._pass(later(self.end_of(placed) - self._now(), 0.0))

    def _pass(self, seconds: Seconds) -> None:
        """Let time pass in which the device does nothing."""
        self._settle()
        self._ends_now = None
        for lane, busy in self._busy.items():
            self._busy[lane] = 0.0 if busy is seconds else later(busy - seconds, 0.0)
        self._begin(self._worked + seconds, self._under_messages)

    def _time(self, worked: Seconds, under_messages: Seconds) -> Seconds:
        """When a device is where it has worked so much, some of it under messages."""
        if self.interference <= 0:
            return worked
        return worked + (self.interference / (1.0 + self.interference)) * under_messages

    def _now(self) -> Seconds:
        """When the device has done all its work so far."""
        self._settle()
        return self._time(self._worked, self._under_messages)

    def _begin(self, worked: Seconds, under_messages: Seconds) -> None:
        self._worked, self._under_messages = worked, under_messages
        busy = self._busy[NETWORK]
        if COPIES_LINK in self._busy:
            busy = later(busy, self._busy[COPIES_LINK])
        if self._announced:
            waiting = later(self.free_at(NETWORK), self._announced_at) + self._announced_seconds
            busy = later(waiting - self._time(worked, under_messages), 0.0)
        start = _State(worked, under_messages, busy)
        self._stretch = _Stretch(start, 1.0 + self.interference)

    def _settle(self) -> None:
        """Do what the device was told since it last waited."""
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


class _State(NamedTuple):
    """What a device has worked, how much of it under messages, and for how long more these go."""

    worked: Seconds
    under_messages: Seconds
    busy: Seconds

    def worked_on(self, work: Seconds, slower: float) -> "_State":
        """Behind more work, which takes ``slower`` times as long under messages."""
        if _is_nothing(work) or _is_nothing(self.busy):
            return _State(self.worked + work, self.under_messages, self.busy)
        hidden = earlier(slower * work, self.busy)
        return _State(self.worked + work, self.under_messages + hidden, self.busy - hidden)

    def sent(self, seconds: Seconds) -> "_State":
        """Behind a message that leaves now."""
        return _State(self.worked, self.under_messages, self.busy + seconds)


class _Stretch:
    """Computing that waits for nothing: pieces of work with a message behind each, then more."""

    def __init__(self, start: _State, slower: float) -> None:
        self.pieces: list[tuple[Seconds, Seconds]] = []
        self.work: Seconds = 0.0
        self.slower = slower
        self._known = (0, start)
        self._start = start

    @property
    def is_empty(self) -> bool:
        """Whether nothing was told yet."""
        return not self.pieces and _is_nothing(self.work)

    def message(self, seconds: Seconds) -> None:
        """A message leaves behind the work so far."""
        self.pieces.append((self.work, seconds))
        self.work = 0.0

    def after(self, count: int) -> _State:
        """Behind so many messages."""
        if self._known[0] > count:
            self._known = (0, self._start)
        done, state = self._known
        if count > done:
            self._known = (count, self._through(state, self.pieces[done:count]))
        return self._known[1]

    @property
    def end(self) -> _State:
        """Behind everything."""
        return self.after(len(self.pieces)).worked_on(self.work, self.slower)

    def _through(self, state: _State, pieces: list[tuple[Seconds, Seconds]]) -> _State:
        pieces = _with_work(pieces)
        shapes = {np.shape(part) for piece in pieces for part in piece}
        shape = np.broadcast_shapes(*shapes, np.shape(state.busy))
        if shape == () or len(pieces) < 2:
            for work, seconds in pieces:
                state = state.worked_on(work, self.slower).sent(seconds)
            return state
        worked, under, busy = state.worked, np.empty(shape), np.empty(shape)
        for rows in _blocks(shape):
            under[rows], busy[rows] = self._block(
                _rows(state.busy, rows, shape),
                [(_rows(work, rows, shape), _rows(sent, rows, shape)) for work, sent in pieces],
                under[rows].shape,
            )
        for work, _ in pieces:
            if not _is_nothing(work):
                worked = worked + work
        return _State(worked, state.under_messages + under, busy)

    def _block(
        self, busy: Seconds, pieces: list[tuple[Seconds, Seconds]], shape: tuple[int, ...]
    ) -> tuple[Seconds, Seconds]:
        """Seconds of messages under computing, and of those left: many pieces, in place."""
        hidden, under, is_own = np.empty(shape), np.zeros(shape), False
        for work, seconds in pieces:
            if not _is_nothing(work) and not _is_nothing(busy):
                np.minimum(self.slower * work, busy, out=hidden)
                under += hidden
                busy = np.subtract(busy, hidden, out=busy if is_own else None)
                is_own = True
            busy = np.add(busy, seconds, out=busy if is_own else None)
        return under, busy


def later(one: Seconds, other: Seconds) -> Seconds:
    """The later of two times, of numbers or arrays."""
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return np.maximum(one, other)
    return one if one > other else other


def earlier(one: Seconds, other: Seconds) -> Seconds:
    """The earlier of two times, of numbers or arrays."""
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return np.minimum(one, other)
    return one if one < other else other


def _is_nothing(seconds: Seconds) -> bool:
    return isinstance(seconds, float) and seconds == 0.0


def _with_work(pieces: list[tuple[Seconds, Seconds]]) -> list[tuple[Seconds, Seconds]]:
    """The same pieces; messages that leave together are one."""
    joined = pieces[:1]
    for work, seconds in pieces[1:]:
        if _is_nothing(work):
            joined[-1] = (joined[-1][0], joined[-1][1] + seconds)
        else:
            joined.append((work, seconds))
    return joined


def _blocks(shape: tuple[int, ...]) -> Iterator[slice]:
    """Parts of the first axis that have at most `_BLOCK` configurations."""
    length = max(1, _BLOCK // math.prod(shape[1:]))
    for first in range(0, shape[0], length):
        yield slice(first, min(first + length, shape[0]))


def _rows(part: Seconds, rows: slice, shape: tuple[int, ...]) -> Seconds:
    """Some rows of an array that broadcasts to a shape."""
    if np.ndim(part) < len(shape) or part.shape[0] == 1:
        return part
    return part[rows]
