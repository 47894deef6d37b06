"""What gradient messages add to the last backward of plans, for shard stages 0 to 2."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from paceline.plan.messages import messages
from paceline.predictor.joined_layers import runs_between
from paceline.predictor.layer_arrays import Array
from paceline.predictor.pipeline_step import last_backward_segments
from paceline.predictor.search.setting import Setting
from paceline.predictor.step_builder import COMPUTE, NETWORK
from paceline.predictor.step_clocks import StepClocks, later
from paceline.predictor.step_costs import Seconds
from paceline.step import Phase


@dataclass(frozen=True)
class Exposed:
    """What communication adds to computing, in seconds.

    ``tail`` is from the end of backward to that of the last message, ``stretched`` by how much
    computing under messages and their launches takes longer.
    """

    tail: Seconds
    stretched: Seconds


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
        if not self.synchronisation.groups_by_times:
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

    def seconds(self, zero: int) -> Array:
        """Each message, of whole gradients or (stage 1) of their shards."""
        sizes = np.array([group.size_bytes for group in self.groups]).reshape(-1, 1, 1, 1, 1)
        cost = self.exchange.scatter if zero else self.exchange.round_trip
        return np.asarray(cost(sizes))[..., 0]

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
        if self.synchronisation.groups_by_times:
            return self._exposed_by_times(zero, queued)
        computing = self.factor * self.own.backward
        pieces = list(zip(self._fractions(), self.seconds(zero), strict=False))
        rest = 1.0 - sum(fraction for fraction, _ in pieces)
        exchange = self.own.backward_exchange[None, :, None]
        told = _told(computing, pieces, rest, self._launch, self.costs.interference, queued)
        return Exposed(np.maximum(told.tail - exchange, 0.0), told.stretched)

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
            segments = last_backward_segments(layers, exchange, zero, self._launch)
            sending = [own for own in segments if own.size_bytes > 0]
            told = _told(
                computing,
                [(own.fraction, own.message_seconds) for own in sending],
                1.0 - sum(own.fraction for own in sending),
                self._launch,
                self.costs.interference,
                float(waiting[place]),
            )
            stretched[place] = told.stretched
            between = sum(layer.backward_exchange_seconds for layer in layers)
            tails[place] = max(0.0, told.tail - between)
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

    def _fractions(self) -> Iterator[Seconds]:
        """What of backward comes before each message: all before the first if they wait for it."""
        if self.synchronisation.leaves_after_backward:
            yield from (float(number == 0) for number in range(len(self.groups)))
            return
        runs = runs_between(self.groups, self.positions[0], self.positions[-1] + 1)
        for run in runs[: -len(self.groups) - 1 : -1]:
            own = self.table.sums(run)
            exchange = own.backward_exchange[:, None]
            yield (self.factor * own.backward + exchange) / self._backward


def _told(
    computing: Seconds,
    pieces: Sequence[tuple[Seconds, Seconds]],
    rest: Seconds,
    launch_seconds: float,
    interference: float,
    queued: Seconds,
) -> Exposed:
    """A backward of ``computing`` seconds: its fractions with a message behind each, and the rest.

    ``queued`` is for how long earlier messages keep the network busy when it begins.
    """
    clocks = StepClocks(interference)
    clocks.occupy_network(queued)
    for fraction, seconds in pieces:
        done = clocks.compute("", Phase.BACKWARD, fraction * computing + launch_seconds)
        clocks.send("", seconds, 0.0, (done,))
    clocks.compute("", Phase.BACKWARD, rest * computing)
    end = clocks.free_at(COMPUTE)
    return Exposed(later(clocks.free_at(NETWORK) - end, 0.0), end - computing)


def _by_stage(whole: Array, parts: Array) -> Array:
    """Tails of shard stages 0 and 1; those beyond have none."""
    none = np.zeros((1, 1, 1))
    return np.stack(np.broadcast_arrays(whole, parts, none, none), axis=-1)
