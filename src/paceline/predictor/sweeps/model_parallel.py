"""Model parallelism by filter over the five axes, beside data parallelism of the same samples."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from paceline.plan.sharding import ShardedLayer, ShardMessage
from paceline.predictor.collectives import Group, cost_on_fabric
from paceline.predictor.layer_arrays import Array, LayerArrays
from paceline.predictor.layout import Layout
from paceline.predictor.prediction import Prediction
from paceline.predictor.products import BACKWARD, FORWARD
from paceline.predictor.replica_step import tell_replica
from paceline.predictor.step_clocks import StepClocks
from paceline.predictor.step_costs import LayerTime, Seconds
from paceline.predictor.sweeps.axes import AXES, Points, cluster_at
from paceline.predictor.sweeps.network import fabric_at
from paceline.predictor.sweeps.sweep import Sweep


@dataclass(frozen=True)
class ModelParallelSweep(Sweep):
    """Filters of every layer divided among all devices.

    A configuration's batch is what a worker would have under data parallelism: here every
    worker sees the samples of all of them, so both train on the same samples per step. Shares
    of filters may be fractions, as in the study; `scheduled` needs whole ones.
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
        plan = replace(self.case.plan, tp=cluster.devices)
        return self.predicted(round(values["batch"]) * cluster.devices, cluster, plan)

    @cached_property
    def _kinds(self) -> dict[float, tuple[ShardedLayer, ...]]:
        """Shares of the kinds of layer by number of workers, as they are asked for."""
        return {}

    def _steps(self, nodes: float, points: Points) -> Array:
        """Configurations with one number of nodes: a replica, its exchanges in every layer."""
        workers = nodes * self.cluster.devices_per_node
        degree = int(workers) if workers == round(workers) else workers
        replica = self.case.replica
        if degree not in self._kinds:
            sharding, first = replica.sharding, replica.alike.first
            self._kinds[degree] = sharding.layers(degree, positions=first)
        kinds, each = self._kinds[degree], replica.alike.counts(range(len(replica.alike.place)))
        batches = points.batch * workers
        factor = self.case.slowest_among(np.full(1, workers))
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
        costs = replace(
            self.case.costs,
            copy_seconds=self.case.costs.copy_seconds * batches / self.workload.batch,
            update_seconds=self.update_seconds(parameters, points.memory),
            overhead_seconds=self.case.framework.overhead_seconds(int(tensors), 1),
        )
        clocks = StepClocks()
        tell_replica(clocks, [whole], None, costs)
        return np.asarray(clocks.seconds)

    def _computing(
        self, kinds: tuple[ShardedLayer, ...], each: Array, batches: Array, points: Points
    ) -> Array:
        """Forward and backward of all layers."""
        counts = np.zeros((2, 2, len(kinds)))
        counts[0, FORWARD] = counts[1, BACKWARD] = each
        distinct, position = np.unique(batches, return_inverse=True)
        sums = LayerArrays(self.case.replica, kinds).summed(distinct, counts)
        return sums.seconds(position, points.flops, points.memory)

    def _exchanges(
        self,
        messages: Sequence[Sequence[ShardMessage]],
        each: Array,
        workers: float,
        batches: Array,
        points: Points,
    ) -> Array:
        """Gathers of activations, or sums of their gradients, which nothing hides."""
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
        library = self.case.framework.library(self.cluster.device)
        total = np.zeros(points.size)
        for message, count in counted.items():
            cost = cost_on_fabric(message.operation, group, fabric, library)
            total += count * cost.seconds(np.asarray(message.size.at(batches), dtype=float))
        return total
