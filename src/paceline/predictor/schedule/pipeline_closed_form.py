"""Time of pipelines of equal blocks: the longest path through their passes and messages.

Such a pipeline has three kinds of chunk: the first also has the embedding, the last the loss, the
others are equal. Closed forms list the paths that can be the longest; where messages take longer
than passes, or bounds are more than 2 % apart, the recurrence over passes is evaluated. Everything
is vectorised, so that a search evaluates many plans at once.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from paceline.predictor.plan.plan_choices import PipelineSchedule
from paceline.predictor.schedule.pipeline_orders import Part, listed_passes

Array = NDArray[np.float64]

_ROUNDS = 5
"""Rounds of ``pp`` micro-batches after which every further round takes equally long."""
_PERIOD = 4
"""Rounds over which the time of a further round is averaged (stages with one chunk each)."""
_CERTAIN = 1.02
"""Largest upper over lower bound for which their mean is used: its error is at most 1 %."""
_LONG_HOP = 0.95
"""Largest message time over the fastest pass for which the closed form is used."""
_SLOW_FIRST = 1.5
"""Largest first over last chunk for the closed form with at most ``pp`` micro-batches."""
_FEW_PASSES = 150
"""Largest pp x pp x interleave for which the recurrence is affordable; else closed form."""


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
    """Pipelines whose ``first`` and ``last`` chunk take at least as long as ``middle`` ones.

    ``hop`` is the seconds of a message between chunks, each direction. All arrays broadcast.
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
        """Round trip of one micro-batch through all stages, with one chunk each."""
        inner = self.first.both + self.last.both + (self.pp - 2.0) * self.middle.both
        return np.asarray(inner + 2.0 * (self.pp - 1.0) * self.hop)

    def gpipe_seconds(self) -> Array:
        """GPipe: all forwards at the pace of the slowest pass or message, then all backwards."""
        forward, backward = (
            self._slowest(*(getattr(chunk, way) for chunk in (self.first, self.middle, self.last)))
            for way in ("forward", "backward")
        )
        return np.asarray(self.way + (self.micro_batches - 1.0) * (forward + backward))

    def _slowest(self, first: Array, middle: Array, last: Array) -> Array:
        """The longest pass or message; there may be no middle stage."""
        between = np.where(self.pp > 2, middle, 0.0)
        return np.asarray(np.maximum(np.maximum(first, last), np.maximum(between, self.hop)))

    def seconds(self) -> Array:
        """1F1B, plain or interleaved, with an error below 1 %."""
        return one_f_one_b_seconds([self])[0]

    def estimate(self) -> tuple[Array, NDArray[np.bool_]]:
        """1F1B in closed form, and a mask of entries that need the recurrence."""
        low, high = self._interleaved_bounds()
        chunked = self.interleave > 1
        # The geometric mean of both bounds has the smallest largest relative error.
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
        # The closed forms assume that messages hide behind passes and that the steady state is
        # reached. Without the recurrence they were up to 10 % (long messages) and 5 % (slow first
        # chunk) off, see docs/explanation/predictor.md.
        unsure = (self.hop > _LONG_HOP * quickest) | few_through_a_slow_first
        unsure = small & (unsure | (chunked & (high > _CERTAIN * low)))
        is_plan = (self.pp > 1) & (self.micro_batches % 1.0 == 0.0)
        # Interleaved 1F1B needs whole rounds (Narayanan et al. 2021).
        is_plan &= ~chunked | (self.micro_batches % self.pp == 0.0)
        return found, np.broadcast_to(unsure & is_plan, found.shape)

    def recurrence_seconds(self) -> Array:
        """1F1B of pipelines along one axis, pass by pass; equal shapes are evaluated together."""
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
        """The path along the first stage, with round trips of one micro-batch beyond it."""
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
        """Bounds for several chunks per stage; exact if first and middle chunks are equal.

        The excess of the first chunk counts at most once per micro-batch, and at least ``pp``
        times: in the first round of forwards and the last round of backwards.
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
        """Selected pipelines, one per column."""
        chunks = (self.first, self.middle, self.last)
        rows = [time for chunk in chunks for time in (chunk.forward, chunk.backward)]
        rows += [self.hop, self.pp, self.micro_batches, self.interleave]
        return np.stack([np.broadcast_to(row, chosen.shape)[chosen] for row in rows])


def of_columns(columns: Array) -> EqualBlocks:
    """Pipelines along one axis from the result of `EqualBlocks.columns`."""
    first, middle, last = (TimedChunk(columns[row], columns[row + 1]) for row in (0, 2, 4))
    return EqualBlocks(first, middle, last, *columns[6:])


def one_f_one_b_seconds(several: Sequence[EqualBlocks]) -> list[Array]:
    """1F1B of each, plain or interleaved, to 1 %; all recurrences are evaluated together."""
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
    """Time of pipelines whose chunks differ: seconds of each chunk, arrays over pipelines.

    After a few rounds every further round adds the same time, so only those are evaluated.
    Pipelines may differ in ``micro_batches`` by such further rounds.
    """
    # With one chunk per stage the time of a round may alternate, so several are averaged.
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
    """Ends of all passes in the order of the schedule; messages are sent in the same order."""
    last = len(forward) - 1
    nothing = np.zeros_like(hop)
    computed, sent = [nothing] * pp, [nothing] * pp
    arrived: list[Array] = []
    for stage, position, part, _, source in listed_passes(
        schedule, pp, micro_batches, (last + 1) // pp
    ):
        is_forward = part is Part.FORWARD
        seconds = (forward if is_forward else backward)[position]
        arrival = nothing
        if source >= 0:
            # Each result is consumed once: dropping it frees the array.
            arrival, arrived[source] = arrived[source], nothing
        done = computed[stage] = np.maximum(arrival, computed[stage]) + seconds
        if position != (last if is_forward else 0):
            done = sent[stage] = np.maximum(done, sent[stage]) + hop
        arrived.append(done)
    return computed[0]
