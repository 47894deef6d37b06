"""Exposed gradient messages after the last backward of pipelines, ZeRO stages 0 to 2."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from paceline.predictor.comm.buckets import messages
from paceline.predictor.kernels.layer_arrays import Array
from paceline.predictor.schedule.array_schedule import ArraySchedule
from paceline.predictor.schedule.coalesce_layers import runs_between
from paceline.predictor.schedule.message_overlap import later
from paceline.predictor.schedule.pipeline_step import last_backward_segments
from paceline.predictor.schedule.step_costs import Seconds
from paceline.predictor.schedule.task_schedule import COMPUTE, NETWORK
from paceline.predictor.search.plan_grid import PlanGrid
from paceline.step import Phase


@dataclass(frozen=True)
class ExposedComm:
    """Time that communication adds to computing, in seconds.

    ``tail`` is the time from the end of backward to the end of the last message, ``stretched`` the
    slowdown of computing by messages and their launches.
    """

    tail: Seconds
    stretched: Seconds


@dataclass(frozen=True)
class ExposedTail:
    """Seconds from the end of a stage's last backward to the end of its last message.

    Axes are degrees, micro-batch, recomputation and ZeRO stage. Stages 2 and 3 have no tail: their
    messages are part of each pass. ``first_delay`` and ``last_delay`` are the delays of the last
    micro-batch's backward by messages, up to the first and the last stage.
    """

    first: Array
    last: Array
    first_delay: Array
    last_delay: Array


def exposed_tail(grid: PlanGrid) -> ExposedTail:
    """Tails of the first and of the last stage of each pipeline."""
    shape = (grid.degrees.size, grid.micro_batch.size, 3, 4)
    first, last, first_delay, last_delay = (np.zeros(shape) for _ in range(4))
    degrees = grid.degrees
    chunks = degrees.pp * degrees.interleave
    for count in np.unique(chunks[degrees.pp > 1]):
        size = len(grid.parts) // int(count)
        ends = [grid.parts[(number + 1) * size - 1].last for number in range(int(count))]
        places = [range(*pair) for pair in zip([0, *ends], ends, strict=False)]
        for plain in (True, False):
            chosen = (chunks == count) & (degrees.dp > 1) & (degrees.pp > 1)
            chosen &= (degrees.interleave == 1) == plain
            if not chosen.any():
                continue
            opening, inner, closing = (_Chunk(grid, places[n], chosen) for n in (0, 1, -1))
            at_first = opening.in_pipeline(None if plain else inner)
            at_last = closing.in_pipeline() if plain else inner.in_pipeline(closing)
            first[chosen], last[chosen] = at_first.tail, at_last.tail
            between, final = inner.in_pipeline().stretched, closing.in_pipeline().stretched
            last_delay[chosen] = final + (count - grid.pp[chosen]) * between
            first_delay[chosen] = at_first.stretched + (count - 2) * between + final
    return ExposedTail(first, last, first_delay, last_delay)


class _Chunk:
    """A chunk of the network, under some combinations of degrees."""

    def __init__(self, grid: PlanGrid, positions: Sequence[int], chosen: NDArray[np.bool_]) -> None:
        self.grid, self.positions, self.chosen = grid, positions, chosen
        self.table, self.costs = grid.table, grid.costs
        self.synchronisation = grid.table.whole.synchronisation
        self.exchange = grid.exchange_among(grid.dp[chosen])
        self.factor = np.broadcast_to(grid.slowest_factor, grid.dp.shape)[chosen][..., 0]
        self.pp, self.interleave = grid.pp[chosen][..., 0], grid.interleave[chosen][..., 0]
        hops = np.broadcast_to(grid.hop_seconds, (len(chosen), *grid.hop_seconds.shape[1:]))
        self.hop = hops[chosen][..., 0]
        self.own = grid.table.sums(positions)
        self.groups = []
        if not self.synchronisation.groups_by_times:
            sizes = grid.table.gradient_bytes(positions)
            ready = [0.0] * len(sizes)
            self.groups = messages(self.synchronisation, sizes, ready, lambda size: size)

    def in_pipeline(self, further: "_Chunk | None" = None) -> ExposedComm:
        """Exposed messages in a pipeline, by degrees, micro-batch, recomputation and ZeRO stage.

        ``further`` is the chunk whose backward precedes this one on the same stage.
        """
        found = []
        for zero in (0, 1):
            queued = np.zeros((1, 1, 1)) if further is None else further.queued_behind(zero)
            found.append(self.exposed(zero, queued))
        return ExposedComm(
            _by_stage(*(each.tail for each in found)),
            _by_stage(*(each.stretched for each in found)),
        )

    def seconds(self, zero: int) -> Array:
        """Seconds of each message: all-reduce, or with stage 1 reduce-scatter."""
        sizes = np.array([group.size_bytes for group in self.groups]).reshape(-1, 1, 1, 1, 1)
        cost = self.exchange.scatter if zero else self.exchange.round_trip
        return np.asarray(cost(sizes))[..., 0]

    def queued_behind(self, zero: int) -> Array:
        """Remaining messages of such chunks when the next chunk of the stage begins.

        The last backwards of a stage's chunks are one trip through all stages apart; messages
        that are not sent by then queue up.
        """
        backward = self._backward
        around = self.pp * (backward + self.hop)
        alone = self.exposed(zero, np.zeros((1, 1, 1))).tail
        everything = self.exchange.scatter if zero else self.exchange.round_trip
        total = everything(self.own.gradient_bytes)[..., 0]
        if self.groups:
            total = self.seconds(zero).sum(axis=0)
        grows = np.maximum(self.interleave - 2.0, 0.0) * np.maximum(total - around, 0.0)
        left = alone - (around - backward) + grows
        return np.asarray(np.maximum(left, 0.0))

    def exposed(self, zero: int, queued: Array) -> ExposedComm:
        """Exposed messages of the last backward; exchanges within a stage follow it."""
        if self.synchronisation.groups_by_times:
            return self._exposed_by_times(zero, queued)
        computing = self.factor * self.own.backward
        pieces = list(zip(self._fractions(), self.seconds(zero), strict=False))
        rest = 1.0 - sum(fraction for fraction, _ in pieces)
        exchange = self.own.backward_exchange[None, :, None]
        found = _schedule_backward(
            computing, pieces, rest, self._launch, self.costs.interference, queued
        )
        return ExposedComm(np.maximum(found.tail - exchange, 0.0), found.stretched)

    @property
    def _launch(self) -> float:
        """Cost of a message on the computing device."""
        return self.costs.message_overhead_seconds * self.exchange.share

    def _exposed_by_times(self, zero: int, queued: Array) -> ExposedComm:
        """The scheduler's segments, plan by plan."""
        tails = np.zeros((int(self.chosen.sum()), self.grid.micro_batch.size, 3))
        stretched = np.zeros_like(tails)
        waiting = np.broadcast_to(queued, tails.shape)
        replicas = self.grid.degrees.dp[self.chosen]
        for index in self._plans():
            exchange = self.grid.exchange_among(float(replicas[index[0]]))
            factor = float(np.broadcast_to(self.factor, tails.shape)[index])
            layers = self.table.layer_times(self.positions, index[1], index[2], factor)
            computing = sum(layer.recompute_seconds + layer.backward_seconds for layer in layers)
            segments = last_backward_segments(
                np.array([layer.whole_backward_seconds for layer in layers]),
                np.array([layer.gradient_bytes for layer in layers]),
                exchange,
                zero,
                self._launch,
            )
            sending = [own for own in segments if own.size_bytes > 0]
            found = _schedule_backward(
                computing,
                [(own.fraction, own.message_seconds) for own in sending],
                1.0 - sum(own.fraction for own in sending),
                self._launch,
                self.costs.interference,
                float(waiting[index]),
            )
            stretched[index] = found.stretched
            between = sum(layer.backward_exchange_seconds for layer in layers)
            tails[index] = max(0.0, found.tail - between)
        return ExposedComm(tails, stretched)

    def _plans(self) -> Iterator[tuple[int, int, int]]:
        """Indices of valid plans."""
        valid = self.grid.valid[self.chosen].any(axis=(2, 3))
        for row, micro in np.argwhere(valid):
            for mode in range(3):
                yield int(row), int(micro), mode

    @property
    def _backward(self) -> Array:
        exchange = self.own.backward_exchange[:, None]
        return np.asarray(self.factor * self.own.backward + exchange)

    def _fractions(self) -> Iterator[Seconds]:
        """Fraction of backward before each message; all of it before the first without overlap."""
        if self.synchronisation.leaves_after_backward:
            yield from (float(number == 0) for number in range(len(self.groups)))
            return
        runs = runs_between(self.groups, self.positions[0], self.positions[-1] + 1)
        for run in runs[: -len(self.groups) - 1 : -1]:
            own = self.table.sums(run)
            exchange = own.backward_exchange[:, None]
            yield (self.factor * own.backward + exchange) / self._backward


def _schedule_backward(
    computing: Seconds,
    pieces: Sequence[tuple[Seconds, Seconds]],
    rest: Seconds,
    launch_seconds: float,
    interference: float,
    queued: Seconds,
) -> ExposedComm:
    """Schedule a backward of ``computing`` seconds: fractions with a message each, then the rest.

    ``queued`` is the remaining time of earlier messages when it begins.
    """
    clocks = ArraySchedule(interference)
    clocks.occupy_network(queued)
    for fraction, seconds in pieces:
        done = clocks.compute("", Phase.BACKWARD, fraction * computing + launch_seconds)
        clocks.send("", seconds, 0.0, (done,))
    clocks.compute("", Phase.BACKWARD, rest * computing)
    end = clocks.free_at(COMPUTE)
    return ExposedComm(later(clocks.free_at(NETWORK) - end, 0.0), end - computing)


def _by_stage(whole: Array, parts: Array) -> Array:
    """Tails of ZeRO stages 0 and 1; later stages have none."""
    none = np.zeros((1, 1, 1))
    return np.stack(np.broadcast_arrays(whole, parts, none, none), axis=-1)
