"""How long pipelines of equal blocks take: the longest path through their passes and messages.

Such a pipeline has three kinds of chunk: the first has the embedding too, the last the loss,
those between are equal. Closed forms list the paths that can be the longest; where messages
take longer than passes, or bounds leave more than 1 % open, the recurrence is evaluated.
Everything is arrays, so that a search looks at many plans at once.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from paceline.plan.choices import PipelineSchedule
from paceline.plan.pipeline import listed_passes

Array = NDArray[np.float64]

_ROUNDS = 5
"""Rounds of ``pp`` micro-batches after which every further one takes as long as the one before."""
_PERIOD = 4
"""Rounds over which what a further one adds is averaged where stages have one chunk each."""
_CERTAIN = 1.02
"""Upper over lower bound up to which their mean is taken: it is then off by at most 1 %."""
_LONG_HOP = 0.95
"""Message over the quickest pass, up to which the closed form is used."""
_SLOW_FIRST = 1.5
"""First chunk over the last, up to which it is used for no more micro-batches than stages."""
_FEW_PASSES = 150
"""Forwards of a round, up to which the recurrence is affordable; the closed form is used beyond."""


@dataclass(frozen=True)
class TimedChunk:
    """Seconds of one micro-batch through a chunk."""

    forward: Array
    backward: Array

    @property
    def both(self) -> Array:
        """Forward and backward."""
        return self.forward + self.backward


@dataclass(frozen=True)
class EqualBlocks:
    """Pipelines whose ``first`` and ``last`` chunk take no less than the ``middle`` ones.

    ``hop`` seconds pass from chunk to chunk, each way. All arrays broadcast.
    """

    first: TimedChunk
    middle: TimedChunk
    last: TimedChunk
    hop: Array
    pp: Array
    micro_batches: Array
    interleave: Array

    @property
    def way(self) -> Array:
        """One micro-batch through all stages of a pipeline with one chunk each, and back."""
        inner = self.first.both + self.last.both + (self.pp - 2.0) * self.middle.both
        return np.asarray(inner + 2.0 * (self.pp - 1.0) * self.hop)

    def gpipe_seconds(self) -> Array:
        """All forwards behind the slowest forward or message, then all backwards likewise."""
        forward, backward = (
            self._slowest(*(getattr(chunk, way) for chunk in (self.first, self.middle, self.last)))
            for way in ("forward", "backward")
        )
        return np.asarray(self.way + (self.micro_batches - 1.0) * (forward + backward))

    def _slowest(self, first: Array, middle: Array, last: Array) -> Array:
        """The longest of a pass and a message; there may be no stage between first and last."""
        between = np.where(self.pp > 2, middle, 0.0)
        return np.asarray(np.maximum(np.maximum(first, last), np.maximum(between, self.hop)))

    def seconds(self) -> Array:
        """1F1B, plain or interleaved, to 1 %."""
        return one_f_one_b_seconds([self])[0]

    def estimate(self) -> tuple[Array, NDArray[np.bool_]]:
        """1F1B in closed form, and where only the recurrence is right to 1 %."""
        low, high = self._interleaved_bounds()
        chunked = self.interleave > 1
        found = np.where(chunked, np.sqrt(low * high), self._plain_seconds())
        quickest = np.where(
            self.pp * self.interleave > 2,
            np.minimum(self.middle.forward, self.middle.backward),
            np.minimum(
                np.minimum(self.first.forward, self.first.backward),
                np.minimum(self.last.forward, self.last.backward),
            ),
        )
        small = self.pp * self.pp * self.interleave <= _FEW_PASSES
        few_through_a_slow_first = (self.micro_batches <= self.pp) & (
            self.first.both > _SLOW_FIRST * self.last.both
        )
        unsure = (self.hop > _LONG_HOP * quickest) | few_through_a_slow_first
        unsure = small & (unsure | (chunked & (high > _CERTAIN * low)))
        is_plan = (self.pp > 1) & (self.micro_batches % 1.0 == 0.0)
        is_plan &= ~chunked | (self.micro_batches % self.pp == 0.0)
        return found, np.broadcast_to(unsure & is_plan, found.shape)

    def recurrence_seconds(self) -> Array:
        """1F1B of pipelines along one axis, pass by pass; those alike in shape together."""
        result = np.empty(self.pp.shape)
        span = self.pp * np.where(self.interleave > 1, 1, _PERIOD)
        further = (self.micro_batches - 1 - _ROUNDS * self.pp) // span
        few = self.micro_batches - np.where(further > 1, further, 0) * span
        shapes = np.stack([self.pp, few, self.interleave])
        for pp, count, interleave in np.unique(shapes, axis=1).T.astype(int):
            own = (self.pp == pp) & (few == count) & (self.interleave == interleave)
            some = of_columns(self.columns(own))
            inner = pp * interleave - 2
            forward, backward = (
                [getattr(some.first, name)]
                + [getattr(some.middle, name)] * inner
                + [getattr(some.last, name)]
                for name in ("forward", "backward")
            )
            result[own] = uneven_seconds(forward, backward, some.hop, pp, some.micro_batches)
        return result

    def _plain_seconds(self) -> Array:
        """One chunk per stage; the longest path goes to the last stage and back, and then either

        - zigzags below a stage: n micro-batches through the last n stages and back, or
        - stays on the first stage, with a round trip beyond it at the start, the end, or both.
        """
        way, others = self.way, self.micro_batches - 1.0
        first, last = self.first.both, self.last.both
        step = self.middle.both + 2.0 * self.hop
        longest = way + others * last
        for stages, whole in (
            (np.maximum(self.pp - 1.0, 1.0), last + (self.pp - 2.0) * step),
            (self.pp, way),
        ):
            times, rest = np.divmod(others, stages)
            turn = np.where((stages == self.pp) & (times > 0), np.maximum(first, last), last)
            left = np.where(rest > 0, turn + (rest - 1.0) * step, 0.0)
            longest = np.maximum(longest, way + times * whole + left)
        return np.asarray(np.maximum(longest, self._first_stage_seconds()))

    def _first_stage_seconds(self) -> Array:
        """The first stage always at work but for round trips of one micro-batch beyond it."""
        ahead = self.pp - 1.0
        missed = np.minimum(ahead, self.micro_batches - 1.0)
        beyond = self.way - self.first.both
        both_ends = np.where(
            self.micro_batches > self.pp, 2.0 * beyond - ahead * self.first.both, 0.0
        )
        one_end = beyond - missed * np.minimum(self.first.forward, self.first.backward)
        waiting = np.maximum(np.maximum(one_end, both_ends), 0.0)
        return np.asarray(self.micro_batches * self.first.both + waiting)

    def _interleaved_bounds(self) -> tuple[Array, Array]:
        """Several chunks per stage: exact if the first chunk takes as long as the middle ones.

        What it takes longer counts at most once per micro-batch. It counts at least ``pp``
        times, for the first round of forwards and the last of backwards.
        """
        middle = self.middle.both
        further = (self.interleave - 1.0) * middle
        last_stage = self.micro_batches * (self.last.both + further) + (self.pp - 1.0) * middle
        exact = last_stage + 2.0 * (self.pp * self.interleave - 1.0) * self.hop
        longer = self.first.both - middle
        low = np.maximum(exact, self.micro_batches * (self.first.both + further))
        low = np.maximum(low, last_stage + self.pp * longer)
        return low, np.asarray(exact + self.micro_batches * longer)

    def columns(self, chosen: NDArray[np.bool_]) -> Array:
        """Some of them, one a column."""
        chunks = (self.first, self.middle, self.last)
        rows = [time for chunk in chunks for time in (chunk.forward, chunk.backward)]
        rows += [self.hop, self.pp, self.micro_batches, self.interleave]
        return np.stack([np.broadcast_to(row, chosen.shape)[chosen] for row in rows])


def of_columns(columns: Array) -> EqualBlocks:
    """Pipelines along one axis from what `EqualBlocks.columns` gives."""
    first, middle, last = (TimedChunk(columns[row], columns[row + 1]) for row in (0, 2, 4))
    return EqualBlocks(first, middle, last, *columns[6:])


def one_f_one_b_seconds(several: Sequence[EqualBlocks]) -> list[Array]:
    """1F1B of each, plain or interleaved, to 1 %; recurrences of all are gone through together."""
    estimates = [each.estimate() for each in several]
    unsure = [each.columns(chosen) for each, (_, chosen) in zip(several, estimates, strict=True)]
    exact = of_columns(np.concatenate(unsure, axis=1)).recurrence_seconds()
    ends = np.cumsum([columns.shape[1] for columns in unsure])
    for (found, chosen), own in zip(estimates, np.split(exact, ends[:-1]), strict=True):
        found[chosen] = own
    return [found for found, _ in estimates]


def uneven_seconds(
    forward: Sequence[Array],
    backward: Sequence[Array],
    hop: Array,
    pp: int,
    micro_batches: int | Array,
    schedule: PipelineSchedule = PipelineSchedule.ONE_F_ONE_B,
) -> Array:
    """Time of pipelines whose chunks all differ: seconds of each chunk, arrays of pipelines.

    After some rounds every further one adds the same, so only those are gone through. Pipelines
    may differ in ``micro_batches`` by such further rounds.
    """
    span = pp * (_PERIOD if len(forward) == pp else 1)
    further = (np.asarray(micro_batches) - 1 - _ROUNDS * pp) // span
    further = np.where(further > 1, further, 0)
    few = int(np.ravel(micro_batches - further * span)[0])
    some = _recurrence(forward, backward, hop, pp, few, schedule)
    if not further.any():
        return some
    more = _recurrence(forward, backward, hop, pp, few + span, schedule)
    return np.asarray(some + further * (more - some))


def _recurrence(
    forward: Sequence[Array],
    backward: Sequence[Array],
    hop: Array,
    pp: int,
    micro_batches: int,
    schedule: PipelineSchedule,
) -> Array:
    """Ends of all passes in the order in which stages do them; messages leave in that order too."""
    last = len(forward) - 1
    nothing = np.zeros_like(hop)
    computed, sent = [nothing] * pp, [nothing] * pp
    arrived: list[Array] = []
    for stage, place, is_forward, _, source in listed_passes(
        schedule, pp, micro_batches, (last + 1) // pp
    ):
        seconds = (forward if is_forward else backward)[place]
        arrival = nothing
        if source >= 0:
            arrival, arrived[source] = arrived[source], nothing
        done = computed[stage] = np.maximum(arrival, computed[stage]) + seconds
        if place != (last if is_forward else 0):
            done = sent[stage] = np.maximum(done, sent[stage]) + hop
        arrived.append(done)
    return computed[0]
