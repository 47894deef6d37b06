"""Model parallelism by filter over the five axes of a sweep."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from paceline.predictor.comm.rank_group import Group
from paceline.predictor.comm.replica_comm import cost_among
from paceline.predictor.kernels.gemm_arrays import BACKWARD, FORWARD
from paceline.predictor.kernels.layer_arrays import Array, LayerArrays
from paceline.predictor.partition.rank_layout import Layout
from paceline.predictor.partition.sharding import ShardedLayer, ShardMessage
from paceline.predictor.prediction import Prediction
from paceline.predictor.schedule.device_step import DeviceStep
from paceline.predictor.schedule.step_costs import LayerTime, Seconds
from paceline.predictor.sweep.sweep import Sweep
from paceline.predictor.sweep.sweep_axes import AXES, Points, cluster_at
from paceline.predictor.sweep.sweep_network import fabric_at
from paceline.predictor.uncertainty.applied_corrections import slowest_among


@dataclass(frozen=True)
class ModelParallelSweep(Sweep):
    """Filters of every layer divided among all devices.

    The batch of a configuration is per data-parallel worker. A model-parallel worker processes the
    samples of all workers, so both methods train on the same samples per step. Shares of filters
    may be fractions, as in Castello et al. (PDP 2021); `scheduled` needs whole ones.
    """

    def at(self, points: Points) -> Array:
        """Seconds per step of every configuration of a list."""
        result = np.empty(points.size)
        for nodes in np.unique(points.nodes):
            own = points.nodes == nodes
            part = Points(*(getattr(points, name)[own] for name in AXES))
            result[own] = self._steps(float(nodes), part)
        return result

    def scheduled(self, values: dict[str, float]) -> Prediction:
        """The scheduler's prediction of one configuration, by names of `AXES`."""
        cluster = cluster_at(self.cluster, self.workload, values)
        plan = replace(self.job.plan, tp=cluster.devices)
        return self.predicted(round(values["batch"]) * cluster.devices, cluster, plan)

    @cached_property
    def _kinds(self) -> dict[float, tuple[ShardedLayer, ...]]:
        """Cached shares of the kinds of layer by number of workers."""
        return {}

    def _steps(self, nodes: float, points: Points) -> Array:
        """Configurations with one number of nodes: one replica with exchanges in every layer."""
        workers = nodes * self.cluster.devices_per_node
        degree = int(workers) if workers == round(workers) else workers
        parts = self.parts
        if degree not in self._kinds:
            self._kinds[degree] = parts.sharding.layers(degree, positions=parts.classes.first)
        kinds, each = self._kinds[degree], parts.classes.all_counts
        batches = points.batch * workers
        factor = slowest_among(self.job, self.job.corrections, np.full(1, workers))
        forward, backward = factor * self._computing(kinds, each, batches, points)
        sent: Seconds = 0.0
        returned: Seconds = 0.0
        if workers > 1:
            sent, returned = (
                self._exchanges(own, each, workers, batches, points)
                for own in (
                    [part.tensor_forward for part in kinds],
                    [part.tensor_backward for part in kinds],
                )
            )
        whole = LayerTime("", forward, backward, 0.0, 0.0, sent, returned)
        parameters, tensors = (
            float(each @ np.array(own, dtype=float))
            for own in (
                [part.profile.trainable_parameters for part in kinds],
                [len(part.profile.tensors) for part in kinds],
            )
        )
        own = self.costs(self.job.corrections)
        costs = replace(
            own,
            copy_seconds=own.copy_seconds * batches / self.workload.batch,
            update_seconds=self.update_seconds(parameters, points.memory),
            overhead_seconds=self.job.framework.overhead_seconds(int(tensors), 1),
        )
        return np.asarray(DeviceStep([whole], None, costs).array_seconds())

    def _computing(
        self, kinds: tuple[ShardedLayer, ...], each: Array, batches: Array, points: Points
    ) -> Array:
        """Forward and backward of all layers."""
        counts = np.zeros((2, 2, len(kinds)))
        counts[0, FORWARD] = counts[1, BACKWARD] = each
        distinct, position = np.unique(batches, return_inverse=True)
        sums = LayerArrays(self.parts, kinds, self.efficiency).summed(distinct, counts)
        return sums.seconds(position, points.flops, points.memory)

    def _exchanges(
        self,
        messages: Sequence[Sequence[ShardMessage]],
        each: Array,
        workers: float,
        batches: Array,
        points: Points,
    ) -> Array:
        """Exposed gathers of activations, or sums of their gradients."""
        counted: Counter[ShardMessage] = Counter()
        for own, count in zip(messages, each, strict=True):
            for message in own:
                counted[message] += int(count)
        whole = Layout(workers, 1, 1, 1, 1, self.cluster.devices_per_node).tensor
        group = Group(
            *(
                np.full(points.size, float(number))
                for number in (whole.ranks, whole.ranks_per_node, whole.concurrent_groups)
            )
        )
        fabric = fabric_at(self.cluster, group, points.link, points.memory)
        total = np.zeros(points.size)
        for message, count in counted.items():
            cost = cost_among(self.parts, message.operation, group, fabric)
            total += count * cost.seconds(np.asarray(message.size.at(batches), dtype=float))
        return total
