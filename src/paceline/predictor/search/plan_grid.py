"""The grid of plans with one tensor-parallel degree, as arrays over the other degrees."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from paceline.predictor.comm.gradient_exchange import exchange_among
from paceline.predictor.comm.rank_group import Group, Numbers
from paceline.predictor.comm.replica_comm import cost_among, hop_seconds
from paceline.predictor.kernels.layer_arrays import Array
from paceline.predictor.partition.pipeline_stages import crossing_bytes
from paceline.predictor.partition.rank_layout import Layout
from paceline.predictor.prediction_inputs import PredictionInputs
from paceline.predictor.schedule.step_costs import GradientExchange, StepCosts
from paceline.predictor.search.layer_table import LayerTable, Sums
from paceline.predictor.search.search_space import ZERO_STAGES, Degrees
from paceline.predictor.uncertainty.applied_corrections import slowest_among
from paceline.workload.blocks import Block


@dataclass(frozen=True)
class PlanGrid:
    """A layer table and the degrees that use it.

    ``job`` is a single replica with the same framework and synchronisation, ``costs`` its step
    besides layers and messages, ``stages`` the ZeRO stages of plans with replicas. All arrays
    broadcast over the axes degrees, micro-batch, recomputation, ZeRO stage.
    """

    table: LayerTable
    degrees: Degrees
    job: PredictionInputs
    costs: StepCosts
    parts: tuple[Block, ...]
    global_batch: int
    stages: tuple[int, ...] = ZERO_STAGES

    @cached_property
    def whole(self) -> Sums:
        """All layers."""
        return self.table.sums(range(len(self.table.parts)))

    @cached_property
    def first(self) -> Sums:
        """The first block, including the layers before it."""
        return self.table.sums(_positions(self.parts[:1]))

    @cached_property
    def middle(self) -> Sums:
        """A block between the first and the last; empty if there is none."""
        return self.table.sums(_positions(self.parts[1:2] if len(self.parts) > 2 else ()))

    @cached_property
    def last(self) -> Sums:
        """The last block, including the layers after it; empty if there is only one block."""
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
        """Samples per micro-batch."""
        return self.by_micro_batch(self.table.micro_batches)

    @cached_property
    def micro_batches(self) -> Array:
        """Micro-batches per step; a fraction if the micro-batch does not divide the batch."""
        return np.asarray(self.global_batch / (self.dp * self.micro_batch))

    @cached_property
    def blocks_per_chunk(self) -> Array:
        """Blocks in each chunk of a pipeline."""
        return np.asarray(len(self.parts) / (self.pp * self.interleave))

    @cached_property
    def valid(self) -> Array:
        """Whether a combination is valid: whole micro-batches and rounds, ZeRO only with dp > 1."""
        count = self.micro_batches
        whole = count == np.floor(count)
        rounds = (self.interleave == 1) | (count % self.pp == 0)
        shares = (self.zero == 0) | (self.dp > 1)
        shares &= np.isin(self.zero, self.stages) | (self.dp == 1)
        return np.asarray(whole & rounds & shares)

    @cached_property
    def slowest_factor(self) -> Array:
        """Computing time of the slowest of all devices over the mean one."""
        devices = self.degrees.devices.astype(float)
        return self.by_degrees(slowest_among(self.job, self.job.corrections, devices))

    @cached_property
    def copy_seconds(self) -> Array:
        """Seconds to copy the samples of a replica to a device."""
        samples = self.global_batch / self.dp / self.table.whole.workload.batch
        return np.asarray(self.costs.copy_seconds * samples)

    @cached_property
    def exchange(self) -> GradientExchange:
        """Messages among replicas; degrees are the first axis."""
        return self.exchange_among(self.dp)

    def exchange_among(self, dp: Numbers) -> GradientExchange:
        """Messages among ``dp`` replicas."""
        key = (np.shape(dp), np.asarray(dp).tobytes())
        if key not in self._exchanges:
            layout = Layout(self.table.tp, 1, dp, 1, 1, self.cluster_node)
            self._exchanges[key] = exchange_among(
                layout.replicas, self.table.whole, self.table.whole.synchronisation
            )
        return self._exchanges[key]

    @cached_property
    def _exchanges(self) -> dict[tuple[tuple[int, ...], bytes], GradientExchange]:
        return {}

    @cached_property
    def hop_seconds(self) -> Array:
        """One message between stages: shards of tensor-parallel devices, then an all-gather."""
        if len(self.parts) < 2:
            return np.zeros((1, 1, 1, 1))
        table = self.table
        crossing = crossing_bytes(table.whole.sharding, self.parts[1].first)
        sent = np.asarray(crossing.at(self.micro_batch), dtype=float) / table.tp
        tokens = table.sequence_parallel
        return np.asarray(hop_seconds(table.whole, self._layout, sent, sequence_parallel=tokens))

    @cached_property
    def tied_seconds(self) -> Array:
        """All-reduce of weights that the first and the last stage share."""
        if not np.any(self.pp > 1):  # a lone device has no link to ask for
            return np.zeros_like(self.pp, dtype=float)
        graph = self.table.whole.workload.graph
        owners = [node.shares_weights_with for node in graph.nodes[self.parts[-1].first :]]
        names = {node.name: position for position, node in enumerate(graph.nodes)}
        shared = [names[owner] for owner in owners if owner is not None]
        far = [position for position in shared if position < self.parts[-1].first]
        tied = sum(self.table.gradient_bytes(far))
        pair = Group(2.0 * np.ones_like(self.pp), self._layout.neighbours.ranks_per_node)
        seconds = cost_among(self.table.whole, "all_reduce", pair)(np.full_like(self.pp, tied))
        return np.where(self.pp > 1, seconds, 0.0)

    @property
    def cluster_node(self) -> int:
        """Devices of a node."""
        return self.table.whole.cluster.devices_per_node

    def by_degrees(self, values: Array | NDArray[np.int64]) -> Array:
        """An array over the combinations of degrees, on its axis."""
        return np.asarray(values, dtype=float).reshape(-1, 1, 1, 1)

    def by_micro_batch(self, values: Array) -> Array:
        """An array over micro-batches, and recomputations if it has them, on its axes."""
        if values.ndim == 1:
            return values.reshape(1, -1, 1, 1)
        return values.reshape(1, *values.shape, 1)

    @property
    def _layout(self) -> Layout:
        return Layout(self.table.tp, 1, self.dp, self.pp, 1, self.cluster_node)


def _positions(parts: Sequence[Block]) -> list[int]:
    return [position for part in parts for position in range(part.first, part.last)]
