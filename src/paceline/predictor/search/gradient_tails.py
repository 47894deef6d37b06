"""What gradient messages add to the last backward of plans, for shard stages 0 to 2."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from paceline.plan.messages import messages
from paceline.plan.synchronisation import Policy
from paceline.predictor.pipeline_step import last_backward_segments
from paceline.predictor.search.layer_table import Array
from paceline.predictor.search.setting import Setting
from paceline.predictor.step_builder import interfered_seconds
from paceline.predictor.vectorised.overlap import Exposed, exposed_seconds

BY_TIMES = (Policy.FUSED, Policy.MERGED)
"""Policies whose messages depend on times, so that each plan has its own."""


@dataclass(frozen=True)
class Tails:
    """Seconds from the end of a stage's last backward to that of its last message.

    By degrees, micro-batch, recomputation and shard stage. Stages 2 and 3 have none: all their
    messages are part of each pass. ``first_delay`` and ``last_delay`` are by how much messages
    lengthen the way back of the last micro-batch up to there.
    """

    first: Array
    last: Array
    first_delay: Array
    last_delay: Array


def pipeline_tails(setting: Setting) -> Tails:
    """Tails of the first and of the last stage of each pipeline."""
    shape = (setting.degrees.size, setting.micro_batch.size, 3, 4)
    first, last, first_delay, last_delay = (np.zeros(shape) for _ in range(4))
    degrees = setting.degrees
    chunks = degrees.pp * degrees.interleave
    for count in np.unique(chunks[degrees.pp > 1]):
        size = len(setting.parts) // int(count)
        ends = [setting.parts[(number + 1) * size - 1].last for number in range(int(count))]
        places = [range(*pair) for pair in zip([0, *ends], ends, strict=False)]
        for plain in (True, False):
            chosen = (chunks == count) & (degrees.dp > 1) & (degrees.pp > 1)
            chosen &= (degrees.interleave == 1) == plain
            if not chosen.any():
                continue
            opening, inner, closing = (_Chunk(setting, places[n], chosen) for n in (0, 1, -1))
            at_first = opening.in_pipeline(None if plain else inner)
            at_last = closing.in_pipeline() if plain else inner.in_pipeline(closing)
            first[chosen], last[chosen] = at_first.tail, at_last.tail
            between, final = inner.in_pipeline().stretched, closing.in_pipeline().stretched
            last_delay[chosen] = final + (count - setting.pp[chosen]) * between
            first_delay[chosen] = at_first.stretched + (count - 2) * between + final
    return Tails(first, last, first_delay, last_delay)


def replica_tails(setting: Setting, queued: Array) -> Array:
    """The same without a pipeline, with what messages and their launches take from computing.

    ``queued`` is for how long earlier messages still hold the network when backward begins.
    """
    result = np.zeros((setting.degrees.size, setting.micro_batch.size, 3, 4))
    chosen = (setting.degrees.pp == 1) & (setting.degrees.dp > 1)
    if chosen.any():
        chunk = _Chunk(setting, range(len(setting.table.parts)), chosen)
        result[chosen] = chunk.in_replica(np.broadcast_to(queued, result.shape)[chosen])
    return result


class _Chunk:
    """A chunk of the network, under some combinations of degrees."""

    def __init__(
        self, setting: Setting, positions: Sequence[int], chosen: NDArray[np.bool_]
    ) -> None:
        self.setting, self.positions, self.chosen = setting, positions, chosen
        self.table, self.costs = setting.table, setting.case.costs
        self.synchronisation = setting.case.synchronisation
        self.exchange = setting.exchange_among(setting.dp[chosen])
        self.factor = np.broadcast_to(setting.slowest_factor, setting.dp.shape)[chosen][..., 0]
        self.pp, self.interleave = setting.pp[chosen][..., 0], setting.interleave[chosen][..., 0]
        hops = np.broadcast_to(setting.hop_seconds, (len(chosen), *setting.hop_seconds.shape[1:]))
        self.hop = hops[chosen][..., 0]
        self.own = setting.table.sums(positions)
        self.groups = []
        if self.synchronisation.policy not in BY_TIMES:
            sizes = setting.table.gradient_bytes(positions)
            ready = [0.0] * len(sizes)
            self.groups = messages(self.synchronisation, sizes, ready, lambda size: size)

    def in_pipeline(self, further: "_Chunk | None" = None) -> Exposed:
        """What messages add by degrees, micro-batch, recomputation and shard stage, in a pipeline.

        ``further`` is the kind of chunk whose backward ended before on the same stage.
        """
        found = []
        for zero in (0, 1):
            queued = np.zeros((1, 1, 1)) if further is None else further.queued_behind(zero)
            found.append(self.exposed(zero, queued))
        return Exposed(
            _by_stage(*(each.tail for each in found)),
            _by_stage(*(each.stretched for each in found)),
        )

    def in_replica(self, queued: Array) -> Array:
        """The same without a pipeline; ``queued`` has these axes too."""
        none = np.zeros((1, 1, 1))
        reduce, scatter = self.seconds(0), self.seconds(1)
        return _by_stage(
            self._last_backward(reduce, none),
            self._last_backward(scatter, none),
            self._last_backward(scatter, queued[..., 2]),
        )

    def seconds(self, zero: int) -> Array:
        """Each message, of whole gradients or (stage 1) of their shards."""
        sizes = np.array([group.size_bytes for group in self.groups]).reshape(-1, 1, 1, 1, 1)
        cost = self.exchange.scatter if zero else self.exchange.round_trip
        return np.asarray(cost(sizes))[..., 0]

    def _last_backward(self, seconds: Array, queued: Array) -> Array:
        """Messages and their launches under a backward that they slow down."""
        launch = self._launch
        launches = launch * len(self.groups)
        if self.synchronisation.leaves_after_backward:
            left = np.maximum(queued - self._backward, 0.0)
            return np.asarray(left + seconds.sum(axis=0) + launches)
        segments, rest = self._segments()
        exposed = exposed_seconds(segments + launch, rest, seconds, self.costs.interference, queued)
        return exposed.tail + exposed.stretched + launches

    def queued_behind(self, zero: int) -> Array:
        """For how long messages of such chunks keep the network busy when the next one begins.

        The last backwards of a stage's chunks are a way through all stages apart; what is not
        sent by then queues up.
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

    def exposed(self, zero: int, queued: Array) -> Exposed:
        """Messages of the last backward; what devices of a stage exchange comes after it."""
        if self.synchronisation.policy in BY_TIMES:
            return self._exposed_by_times(zero, queued)
        seconds, launches = self.seconds(zero), self._launch * len(self.groups)
        exchange = self.own.backward_exchange[None, :, None]
        if self.synchronisation.leaves_after_backward:
            backward = self.factor * self.own.backward
            late = np.maximum(queued - backward, 0.0) + seconds.sum(axis=0)
            tail = np.maximum(late - max(0.0, launches - self._launch) - exchange, 0.0)
            return Exposed(np.asarray(tail), np.full_like(tail, launches))
        segments, rest = self._segments()
        computing = self.factor * self.own.backward / self._backward
        found = exposed_seconds(
            segments * computing + self._launch,
            rest * computing,
            seconds,
            self.costs.interference,
            queued,
        )
        return Exposed(np.maximum(found.tail - exchange, 0.0), found.stretched + launches)

    @property
    def _launch(self) -> float:
        """What a message takes from the device that computes."""
        return self.costs.message_overhead_seconds * self.exchange.share

    def _exposed_by_times(self, zero: int, queued: Array) -> Exposed:
        """The scheduler's own segments of each plan, one after the other."""
        tails = np.zeros((int(self.chosen.sum()), self.setting.micro_batch.size, 3))
        stretched = np.zeros_like(tails)
        waiting = np.broadcast_to(queued, tails.shape)
        replicas = self.setting.degrees.dp[self.chosen]
        for place in self._plans():
            exchange = self.setting.exchange_among(float(replicas[place[0]]))
            factor = float(np.broadcast_to(self.factor, tails.shape)[place])
            layers = self.table.layer_times(self.positions, place[1], place[2], factor)
            computing = sum(layer.recompute_seconds + layer.backward_seconds for layer in layers)
            clock, free = 0.0, float(waiting[place])
            for segment in last_backward_segments(layers, exchange, zero, self._launch):
                work = segment.fraction * computing + segment.launch_seconds
                clock += interfered_seconds(work, free - clock, self.costs.interference)
                free = max(free, clock) + segment.message_seconds
            stretched[place] = clock - computing
            end = clock + sum(layer.backward_exchange_seconds for layer in layers)
            tails[place] = max(0.0, free - end)
        return Exposed(tails, stretched)

    def _plans(self) -> Iterator[tuple[int, int, int]]:
        """Places of combinations that are plans."""
        valid = self.setting.valid[self.chosen].any(axis=(2, 3))
        for row, micro in np.argwhere(valid):
            for mode in range(3):
                yield int(row), int(micro), mode

    @property
    def _backward(self) -> Array:
        exchange = self.own.backward_exchange[:, None]
        return np.asarray(self.factor * self.own.backward + exchange)

    def _segments(self) -> tuple[Array, Array]:
        """Backward before each message, and after the last."""
        runs, done = [], len(self.positions)
        for group in self.groups:
            runs.append(range(group.layers[-1], done))
            done = group.layers[-1]
        offset = self.positions[0]
        shifted = [range(run.start + offset, run.stop + offset) for run in [*runs, range(done)]]
        computing, exchange = self.table.backward_of(shifted)
        backward = self.factor * computing[:, None] + exchange[:, None, :, None]
        return backward[:-1], backward[-1]


def _by_stage(whole: Array, parts: Array, parts_of_each: Array | None = None) -> Array:
    """Tails of shard stages 0, 1, 2; stage 3 has none."""
    none = np.zeros((1, 1, 1))
    last = none if parts_of_each is None else parts_of_each
    return np.stack(np.broadcast_arrays(whole, parts, last, none), axis=-1)
