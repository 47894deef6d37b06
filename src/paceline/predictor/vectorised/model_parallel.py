"""Model parallelism by filter over the five axes, beside data parallelism of the same samples."""

from collections import Counter
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from paceline.plan.sharding import ShardedLayer, ShardMessage
from paceline.predictor.collectives import Group, cost_on_fabric
from paceline.predictor.layout import Layout
from paceline.predictor.prediction import Prediction
from paceline.predictor.vectorised.axes import AXES, Array, Points, cluster_at
from paceline.predictor.vectorised.layer_rows import LayerRows, all_forward, backward_of
from paceline.predictor.vectorised.network import fabric_at, slowest_factor
from paceline.predictor.vectorised.sweep import Sweep
from paceline.workload.cost import GraphProfile


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
    def _parts(self) -> dict[float, tuple[ShardedLayer, ...]]:
        """Shares of the layers by number of workers, as they are asked for."""
        return {}

    def _steps(self, nodes: float, points: Points) -> Array:
        """Configurations with one number of nodes."""
        workers = nodes * self.cluster.devices_per_node
        degree = int(workers) if workers == round(workers) else workers
        if degree not in self._parts:
            self._parts[degree] = self.case.replica.sharding.layers(degree)
        parts = self._parts[degree]
        batches = points.batch * workers
        factor = slowest_factor(self.case, np.full(1, workers))
        seconds = factor * self._computing(parts, batches, points)
        if workers > 1:
            seconds = seconds + self._exchanges(parts, workers, batches, points)
        parameters = float(sum(part.profile.trainable_parameters for part in parts))
        seconds = seconds + self.update_seconds(parameters, points.memory)
        tensors = sum(len(part.profile.tensors) for part in parts)
        seconds = seconds + self.case.framework.overhead_seconds(tensors, 1)
        return self.with_input(seconds, batches)

    def _computing(self, parts: tuple[ShardedLayer, ...], batches: Array, points: Points) -> Array:
        profile = GraphProfile(tuple(part.profile for part in parts))
        count = len(parts)
        rows = LayerRows(
            profile,
            [all_forward(count) + backward_of(range(count))],
            self.cluster.device,
            self.workload.precision,
            self.case.framework,
            self.efficiency,
        )
        distinct, position = np.unique(batches, return_inverse=True)
        return np.asarray(rows.at(distinct).seconds(position, points.flops, points.memory)[0])

    def _exchanges(
        self, parts: tuple[ShardedLayer, ...], workers: float, batches: Array, points: Points
    ) -> Array:
        """Gathers of activations and sums of their gradients, which nothing hides."""
        messages: Counter[ShardMessage] = Counter()
        for part in parts:
            messages.update(part.tensor_forward)
            messages.update(part.tensor_backward)
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
        for message, count in messages.items():
            cost = cost_on_fabric(message.operation, group, fabric, library)
            total += count * cost.seconds(np.asarray(message.size.at(batches), dtype=float))
        return total
