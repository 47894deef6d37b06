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
        last = setting.parts[len(setting.parts) // int(count) - 1].last
        chunk = _Chunk(setting, range(last), chosen)
        own = None if queued is None else np.broadcast_to(queued, result.shape)[chosen]
        result[chosen] = chunk.tails(own)
    return result


class _Chunk:
    """The chunk of the network that backward ends with, under some combinations of degrees."""

    def __init__(
        self, setting: Setting, positions: Sequence[int], chosen: NDArray[np.bool_]
    ) -> None:
        self.setting = setting
        self.positions = positions
        self.synchronisation = _independent_of_times(setting.case.synchronisation)
        self.exchange = setting.exchange_among(setting.dp[chosen])
        self.factor = np.broadcast_to(setting.slowest_factor, setting.dp.shape)[chosen]
        sizes = setting.table.gradient_bytes(positions)
        self.groups = messages(self.synchronisation, sizes, [0.0] * len(sizes), lambda size: size)

    def tails(self, queued: Array | None) -> Array:
        """By degrees, micro-batch, recomputation and shard stage."""
        sizes = np.array([group.size_bytes for group in self.groups]).reshape(-1, 1, 1, 1, 1)
        reduce = np.asarray(self.exchange.message(sizes))
        scatter = np.asarray(self.exchange.scatter(sizes))
        none = np.zeros((1, 1, 1))
        whole = self._stage(reduce[..., 0], None if queued is None else none)
        parts = self._stage(scatter[..., 0], None if queued is None else none)
        again = parts if queued is None else self._stage(scatter[..., 0], queued[..., 2])
        return np.stack(np.broadcast_arrays(whole, parts, again, none), axis=-1)

    def _stage(self, seconds: Array, queued: Array | None) -> Array:
        """For one kind of message; ``queued`` is given where there is no pipeline."""
        costs, table = self.setting.case.costs, self.setting.table
        launch = costs.message_overhead_seconds * self.exchange.share
        in_replica = queued is not None
        if leaves_after_backward(self.synchronisation):
            launches = launch * len(self.groups) if in_replica else 0.0
            return np.asarray(seconds.sum(axis=0) + launches)
        runs, done = [], len(self.positions)
        for group in self.groups:
            runs.append(range(group.layers[-1], done))
            done = group.layers[-1]
        backward = self.factor[None, ..., 0] * table.backward_of([*runs, range(done)])[:, None]
        segments, rest = backward[:-1], backward[-1]
        if queued is not None:
            exposed = exposed_seconds(segments + launch, rest, seconds, costs.interference, queued)
            return exposed.tail + exposed.stretched + launch * len(self.groups)
        # In a pipeline what the devices of a stage exchange comes after the whole backward.
        own = table.sums(self.positions)
        exchange = own.backward_exchange[None, :, None]
        computing = own.backward[None] / (own.backward[None] + exchange)
        return exposed_seconds(segments * computing, rest * computing + exchange, seconds, 0.0).tail


def _independent_of_times(synchronisation: Synchronisation) -> Synchronisation:
    """The policy, or buckets of its size where messages would depend on times."""
    if synchronisation.policy in VECTORISED:
        return synchronisation
    return replace(synchronisation, policy=Policy.BUCKETED)
