"""Everything that plans with one tensor-parallel degree share, as arrays over their degrees."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from paceline.predictor.collectives import Group, Numbers
from paceline.predictor.exchange import exchange_among
from paceline.predictor.layer_arrays import Array
from paceline.predictor.layout import Layout
from paceline.predictor.prepared import PreparedStep
from paceline.predictor.search.layer_table import LayerTable, Sums
from paceline.predictor.search.space import ZERO_STAGES, Degrees
from paceline.predictor.stages import crossing_bytes
from paceline.predictor.step_costs import CollectiveSeconds, GradientExchange
from paceline.workload.blocks import Block


@dataclass(frozen=True)
class Setting:
    """A layer table with the degrees it is used for.

    ``case`` is a single replica with the same framework and synchronisation. Arrays that the
    members give broadcast over the axes degrees, micro-batch, recomputation, shard stage.
    """

    table: LayerTable
    degrees: Degrees
    case: PreparedStep
    parts: tuple[Block, ...]
    global_batch: int

    @cached_property
    def whole(self) -> Sums:
        """All layers."""
        return self.table.sums(range(len(self.table.parts)))

    @cached_property
    def first(self) -> Sums:
        """The first block, with what comes before it."""
        return self.table.sums(_positions(self.parts[:1]))

    @cached_property
    def middle(self) -> Sums:
        """A block between the first and the last (nothing where there is none)."""
        return self.table.sums(_positions(self.parts[1:2] if len(self.parts) > 2 else ()))

    @cached_property
    def last(self) -> Sums:
        """The last block, with what follows it (nothing where the first is the last)."""
        return self.table.sums(_positions(self.parts[-1:] if len(self.parts) > 1 else ()))

    @property
    def pp(self) -> Array:
        """Pipeline stages."""
        return self.by_degrees(self.degrees.pp)

    @property
    def dp(self) -> Array:
        """Replicas."""
        return self.by_degrees(self.degrees.dp)

    @property
    def interleave(self) -> Array:
        """Chunks per stage."""
        return self.by_degrees(self.degrees.interleave)

    @property
    def zero(self) -> Array:
        """Stages of sharded data parallelism."""
        return np.array(ZERO_STAGES, dtype=float).reshape(1, 1, 1, -1)

    @property
    def micro_batch(self) -> Array:
        """Samples at a time."""
        return self.by_micro_batch(self.table.micro_batches)

    @cached_property
    def micro_batches(self) -> Array:
        """How often, per step; a fraction where the micro-batch does not divide the batch."""
        return np.asarray(self.global_batch / (self.dp * self.micro_batch))

    @cached_property
    def blocks_per_chunk(self) -> Array:
        """Blocks in each chunk of a pipeline."""
        return np.asarray(len(self.parts) / (self.pp * self.interleave))

    @cached_property
    def valid(self) -> Array:
        """Whether a combination is a plan: whole micro-batches, whole rounds, shards to share."""
        count = self.micro_batches
        whole = count == np.floor(count)
        rounds = (self.interleave == 1) | (count % self.pp == 0)
        shares = (self.zero == 0) | (self.dp > 1)
        if self.case.framework.shard_stage > 0:
            shares &= (self.zero > 0) | (self.dp == 1)
        return np.asarray(whole & rounds & shares)

    @cached_property
    def slowest_factor(self) -> Array:
        """Computing time of the slowest of all devices over the mean one."""
        return self.by_degrees(self.case.slowest_among(self.degrees.devices.astype(float)))

    @cached_property
    def copy_seconds(self) -> Array:
        """Bringing the samples of a replica to a device."""
        samples = self.global_batch / self.dp / self.table.replica.workload.batch
        return np.asarray(self.case.costs.copy_seconds * samples)

    @cached_property
    def exchange(self) -> GradientExchange:
        """Messages among replicas, by degrees in front of the size's other axes."""
        return self.exchange_among(self.dp)

    def exchange_among(self, dp: Numbers) -> GradientExchange:
        """Messages among so many replicas."""
        key = (np.shape(dp), np.asarray(dp).tobytes())
        if key not in self._exchanges:
            layout = Layout(self.table.tp, 1, dp, 1, 1, self.cluster_node)
            self._exchanges[key] = exchange_among(
                layout.replicas, self.table.replica, self.case.synchronisation
            )
        return self._exchanges[key]

    @cached_property
    def _exchanges(self) -> dict[tuple[tuple[int, ...], bytes], GradientExchange]:
        return {}

    @cached_property
    def hop_seconds(self) -> Array:
        """One message from stage to stage: parts of tensor-parallel devices, then gathered."""
        if len(self.parts) < 2:
            return np.zeros((1, 1, 1, 1))
        tp = self.table.tp
        crossing = crossing_bytes(self.table.replica.sharding, self.parts[1].first)
        size = np.asarray(crossing.at(self.micro_batch), dtype=float)
        seconds = np.asarray(self._cost("point_to_point", self._neighbours)(size / tp))
        if tp > 1 and not self.table.sequence_parallel:
            tensor = Layout(tp, 1, 1, 1, 1, self.cluster_node).tensor
            seconds = seconds + self._cost("all_gather", tensor)(size)
        return seconds

    @cached_property
    def tied_seconds(self) -> Array:
        """All-reduce of weights that the first and the last stage share."""
        if not np.any(self.pp > 1):  # a lone device has no link to ask for
            return np.zeros_like(self.pp, dtype=float)
        graph = self.table.replica.workload.graph
        owners = [node.shares_weights_with for node in graph.nodes[self.parts[-1].first :]]
        names = {node.name: place for place, node in enumerate(graph.nodes)}
        shared = [names[owner] for owner in owners if owner is not None]
        far = [place for place in shared if place < self.parts[-1].first]
        tied = sum(self.table.gradient_bytes(far))
        pair = Group(2.0 * np.ones_like(self.pp), self._neighbours.ranks_per_node)
        seconds = self._cost("all_reduce", pair)(np.full_like(self.pp, tied))
        return np.where(self.pp > 1, seconds, 0.0)

    @property
    def cluster_node(self) -> int:
        """Devices of a node."""
        return self.table.replica.cluster.devices_per_node

    def by_degrees(self, values: Array | NDArray[np.int64]) -> Array:
        """An array over the combinations of degrees, on its axis."""
        return np.asarray(values, dtype=float).reshape(-1, 1, 1, 1)

    def by_micro_batch(self, values: Array) -> Array:
        """An array over micro-batches, and recomputations if it has them, on its axes."""
        if values.ndim == 1:
            return values.reshape(1, -1, 1, 1)
        return values.reshape(1, *values.shape, 1)

    @cached_property
    def _neighbours(self) -> Group:
        return Layout(self.table.tp, 1, self.dp, self.pp, 1, self.cluster_node).neighbours

    def _cost(self, operation: str, group: Group) -> CollectiveSeconds:
        return self.table.replica.cost(operation, group)


def _positions(parts: Sequence[Block]) -> list[int]:
    return [position for part in parts for position in range(part.first, part.last)]
