"""What gradient messages add to the last backward of plans, for shard stages 0 to 2."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from paceline.plan.messages import messages
from paceline.plan.synchronisation import Policy, Synchronisation
from paceline.predict.gradient_messages import leaves_after_backward
from paceline.predict.search.layer_table import Array
from paceline.predict.search.setting import Setting
from paceline.predict.vectorised.data_parallel import VECTORISED
from paceline.predict.vectorised.overlap import exposed_seconds


def pipeline_tails(setting: Setting) -> Array:
    """Seconds from the end of the first stage's last backward to that of its last message."""
    return _tails(setting, setting.degrees.pp > 1, None)


def replica_tails(setting: Setting, queued: Array) -> Array:
    """The same without a pipeline, with what messages and their launches take from computing.

    ``queued`` is for how long earlier messages still hold the network when backward begins.
    """
    return _tails(setting, setting.degrees.pp == 1, queued)


def _tails(setting: Setting, wanted: NDArray[np.bool_], queued: Array | None) -> Array:
    result = np.zeros((setting.degrees.size, setting.micro_batch.size, 3, 4))
    chunks = setting.degrees.pp * setting.degrees.interleave
    for count in np.unique(chunks[wanted]):
        chosen = wanted & (chunks == count) & (setting.degrees.dp > 1)
        if not chosen.any():
            continue
        size = len(setting.parts) // int(count)
        last = setting.parts[size - 1].last
        chunk = _Chunk(setting, range(last), chosen)
        if queued is None:
            further = None
            if count > 2:
                second = range(last, setting.parts[2 * size - 1].last)
                further = _Chunk(setting, second, chosen)
            result[chosen] = chunk.in_pipeline(further)
        else:
            result[chosen] = chunk.in_replica(np.broadcast_to(queued, result.shape)[chosen])
    return result


class _Chunk:
    """The chunk of the network that backward ends with, under some combinations of degrees."""

    def __init__(
        self, setting: Setting, positions: Sequence[int], chosen: NDArray[np.bool_]
    ) -> None:
        self.table, self.costs = setting.table, setting.case.costs
        self.synchronisation = _independent_of_times(setting.case.synchronisation)
        self.exchange = setting.exchange_among(setting.dp[chosen])
        self.factor = np.broadcast_to(setting.slowest_factor, setting.dp.shape)[chosen][..., 0]
        self.pp, self.interleave = setting.pp[chosen][..., 0], setting.interleave[chosen][..., 0]
        self.own = setting.table.sums(positions)
        sizes = setting.table.gradient_bytes(positions)
        self.groups = messages(self.synchronisation, sizes, [0.0] * len(sizes), lambda size: size)
        self.count = len(sizes)

    def in_pipeline(self, further: "_Chunk | None") -> Array:
        """Tails by degrees, micro-batch, recomputation and shard stage, with a pipeline.

        ``further`` is the kind of chunk whose backward ended before on the same stage.
        """
        none = np.zeros((1, 1, 1))
        queued = [none, none]
        if further is not None:
            queued = [further.queued_behind(seconds) for seconds in further.seconds()]
        whole, parts = (self.tail(*pair) for pair in zip(self.seconds(), queued, strict=True))
        return _by_stage(whole, parts, parts)

    def in_replica(self, queued: Array) -> Array:
        """The same without a pipeline; ``queued`` has these axes too."""
        reduce, scatter = self.seconds()
        none = np.zeros((1, 1, 1))
        return _by_stage(
            self._last_backward(reduce, none),
            self._last_backward(scatter, none),
            self._last_backward(scatter, queued[..., 2]),
        )

    def seconds(self) -> tuple[Array, Array]:
        """Each message as an all-reduce and as a reduce-scatter."""
        sizes = np.array([group.size_bytes for group in self.groups]).reshape(-1, 1, 1, 1, 1)
        return (
            np.asarray(self.exchange.message(sizes))[..., 0],
            np.asarray(self.exchange.scatter(sizes))[..., 0],
        )

    def _last_backward(self, seconds: Array, queued: Array) -> Array:
        """Messages and their launches under a backward that they slow down."""
        launch = self.costs.message_overhead_seconds * self.exchange.share
        launches = launch * len(self.groups)
        if leaves_after_backward(self.synchronisation):
            backward = self.own.backward + self.own.backward_exchange[:, None]
            left = np.maximum(queued - self.factor * backward, 0.0)
            return np.asarray(left + seconds.sum(axis=0) + launches)
        segments, rest = self._segments()
        exposed = exposed_seconds(segments + launch, rest, seconds, self.costs.interference, queued)
        return exposed.tail + exposed.stretched + launches

    def queued_behind(self, seconds: Array) -> Array:
        """For how long messages of such chunks keep the network busy when the next one begins.

        The last backwards of a stage's chunks are ``pp`` passes apart; what is not sent by then
        queues up.
        """
        backward = self.factor * (self.own.backward + self.own.backward_exchange[:, None])
        alone = self.tail(seconds, np.zeros((1, 1, 1)))
        grows = np.maximum(seconds.sum(axis=0) - self.pp * backward, 0.0)
        left = alone - (self.pp - 1.0) * backward + np.maximum(self.interleave - 2.0, 0.0) * grows
        return np.where(self.interleave > 1, np.maximum(left, 0.0), 0.0)

    def tail(self, seconds: Array, queued: Array) -> Array:
        """What the devices of a stage exchange comes after the whole backward."""
        exchange = self.own.backward_exchange[None, :, None]
        if leaves_after_backward(self.synchronisation):
            backward = self.factor * self.own.backward
            late = np.maximum(queued - backward, 0.0) + seconds.sum(axis=0)
            return np.asarray(np.maximum(late - exchange, 0.0))
        segments, rest = self._segments()
        computing = self.own.backward / (self.own.backward + exchange)
        rest = rest * computing + exchange
        return exposed_seconds(segments * computing, rest, seconds, 0.0, queued).tail

    def _segments(self) -> tuple[Array, Array]:
        """Backward before each message, and after the last."""
        runs, done = [], self.count
        for group in self.groups:
            runs.append(range(group.layers[-1], done))
            done = group.layers[-1]
        backward = self.factor * self.table.backward_of([*runs, range(done)])[:, None]
        return backward[:-1], backward[-1]


def _by_stage(whole: Array, parts: Array, parts_of_each: Array) -> Array:
    """Tails of shard stages 0, 1, 2; stage 3 has none."""
    none = np.zeros((1, 1, 1))
    return np.stack(np.broadcast_arrays(whole, parts, parts_of_each, none), axis=-1)


def _independent_of_times(synchronisation: Synchronisation) -> Synchronisation:
    """The policy, or buckets of its size where messages would depend on times."""
    if synchronisation.policy in VECTORISED:
        return synchronisation
    return replace(synchronisation, policy=Policy.BUCKETED)
