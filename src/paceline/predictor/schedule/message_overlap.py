"""Stretches of computing with messages in flight, as differences of clocks."""

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from paceline.predictor.schedule.step_costs import Seconds

_BLOCK = 8192
"""Configurations per block: small enough for the CPU cache."""


class OverlapState(NamedTuple):
    """Work done, the part of it during messages, and the remaining time of these messages."""

    worked: Seconds
    under_messages: Seconds
    busy: Seconds

    def worked_on(self, work: Seconds, slower: float) -> "OverlapState":
        """The state after more work, which takes ``slower`` times as long during messages."""
        if is_nothing(work) or is_nothing(self.busy):
            return OverlapState(self.worked + work, self.under_messages, self.busy)
        hidden = earlier(slower * work, self.busy)
        return OverlapState(self.worked + work, self.under_messages + hidden, self.busy - hidden)

    def sent(self, seconds: Seconds) -> "OverlapState":
        """The state after a message is sent now."""
        return OverlapState(self.worked, self.under_messages, self.busy + seconds)


class Stretch:
    """Computing without waits: pieces of work, each followed by a message, then more work."""

    def __init__(self, start: OverlapState, slower: float) -> None:
        self.pieces: list[tuple[Seconds, Seconds]] = []
        self.work: Seconds = 0.0
        self.slower = slower
        self._known = (0, start)
        self._start = start

    @property
    def is_empty(self) -> bool:
        """Whether nothing was scheduled yet."""
        return not self.pieces and is_nothing(self.work)

    def message(self, seconds: Seconds) -> None:
        """Send a message after the work so far."""
        self.pieces.append((self.work, seconds))
        self.work = 0.0

    def after(self, count: int) -> OverlapState:
        """The state after ``count`` messages."""
        if self._known[0] > count:
            self._known = (0, self._start)
        done, state = self._known
        if count > done:
            self._known = (count, self._through(state, self.pieces[done:count]))
        return self._known[1]

    @property
    def end(self) -> OverlapState:
        """The state after everything."""
        return self.after(len(self.pieces)).worked_on(self.work, self.slower)

    def _through(self, state: OverlapState, pieces: list[tuple[Seconds, Seconds]]) -> OverlapState:
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
            if not is_nothing(work):
                worked = worked + work
        return OverlapState(worked, state.under_messages + under, busy)

    def _block(
        self, busy: Seconds, pieces: list[tuple[Seconds, Seconds]], shape: tuple[int, ...]
    ) -> tuple[Seconds, Seconds]:
        """Seconds of overlapped and of remaining messages; works in place."""
        hidden, under, is_own = np.empty(shape), np.zeros(shape), False
        for work, seconds in pieces:
            if not is_nothing(work) and not is_nothing(busy):
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


def is_nothing(seconds: Seconds) -> bool:
    """Whether seconds are the number 0 (arrays are not inspected)."""
    return isinstance(seconds, float) and seconds == 0.0


def _with_work(pieces: list[tuple[Seconds, Seconds]]) -> list[tuple[Seconds, Seconds]]:
    """The same pieces with messages that are sent together merged."""
    joined = pieces[:1]
    for work, seconds in pieces[1:]:
        if is_nothing(work):
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
    """Some rows of an array that broadcasts to ``shape``."""
    if np.ndim(part) < len(shape) or part.shape[0] == 1:
        return part
    return part[rows]
