"""Model parallelism by filter over the five axes, beside data parallelism of the same samples."""

from collections import Counter
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from paceline.hardware import Cluster
from paceline.plan.plan import Plan
from paceline.plan.sharding import Message, ShardedLayer
from paceline.predict.case import Case
from paceline.predict.collectives import Group, cost_on_fabric
from paceline.predict.compute import update_seconds
from paceline.predict.efficiency import Efficiency
from paceline.predict.frameworks import framework as find_framework
from paceline.predict.layout import Layout
from paceline.predict.prediction import Prediction
from paceline.predict.predictor import DEFAULT_FRAMEWORK, predict
from paceline.predict.replica import Replica
from paceline.predict.update import update_traffic_bytes
from paceline.predict.vectorised.axes import AXES, Array, Points, base_values, cluster_at
from paceline.predict.vectorised.layer_rows import LayerRows, all_forward, backward_of
from paceline.predict.vectorised.network import fabric_at, slowest_factor
from paceline.workload.cost import GraphProfile
from paceline.workload.precision import precision
from paceline.workload.workload import Workload


@dataclass(frozen=True)
class ModelParallelSweep:
    """A workload whose filters are divided among all devices, anywhere on the five axes.

    A configuration's batch is what a worker would have under data parallelism: here every
    worker sees the samples of all of them, so both train on the same samples per step. Shares
    of filters may be fractions, as in the study; `scheduled` needs whole ones.
    """

    workload: Workload
    cluster: Cluster
    plan: Plan = field(default_factory=Plan)
    efficiency: Efficiency | None = None
    input_seconds: float = 0.0
    jitter: float | None = None

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
        return predict(
            self.workload.with_batch(round(values["batch"]) * cluster.devices),
            cluster,
            replace(self._case.plan, tp=cluster.devices),
            efficiency=self.efficiency,
            input_seconds=self.input_seconds,
            jitter=self.jitter,
        )

    @property
    def base(self) -> dict[str, float]:
        """Where workload and cluster lie, by names of `AXES`."""
        return base_values(self.workload, self.cluster)

    @cached_property
    def _case(self) -> Case:
        plan = replace(self.plan, dp=1, tp=1, pp=1, cp=1, ep=1, micro_batch=None)
        profile = find_framework(plan.framework or DEFAULT_FRAMEWORK)
        alone = self.cluster.shaped(1, 1)
        return Case(
            Replica(self.workload, alone, plan, profile, self.efficiency),
            self.input_seconds,
            self.jitter,
        )

    @cached_property
    def _parts(self) -> dict[float, tuple[ShardedLayer, ...]]:
        """Shares of the layers by number of workers, as they are asked for."""
        return {}

    def _steps(self, nodes: float, points: Points) -> Array:
        """Configurations with one number of nodes."""
        workers = nodes * self.cluster.devices_per_node
        degree = int(workers) if workers == round(workers) else workers
        if degree not in self._parts:
            self._parts[degree] = self._case.replica.sharding.layers(degree)
        parts = self._parts[degree]
        batches = points.batch * workers
        factor = slowest_factor(self._case, np.full(1, workers))
        costs, framework = self._case.costs, self._case.framework
        seconds = factor * self._computing(parts, batches, points)
        if workers > 1:
            seconds = seconds + self._exchanges(parts, workers, batches, points)
        seconds = seconds + self._update(parts, points.memory)
        tensors = sum(len(part.profile.tensors) for part in parts)
        seconds = seconds + framework.overhead_seconds(tensors, 1)
        supply = costs.input_seconds + costs.copy_seconds * batches / self.workload.batch
        if costs.input_overlapped:
            return np.asarray(np.maximum(seconds, supply))
        return np.asarray(seconds + supply)

    def _computing(self, parts: tuple[ShardedLayer, ...], batches: Array, points: Points) -> Array:
        profile = GraphProfile(tuple(part.profile for part in parts))
        count = len(parts)
        rows = LayerRows(
            profile,
            [all_forward(count) + backward_of(range(count))],
            self.cluster.device,
            self.workload.precision,
            self._case.framework,
            self.efficiency,
        )
        distinct, position = np.unique(batches, return_inverse=True)
        return np.asarray(rows.at(distinct).seconds(position, points.flops, points.memory)[0])

    def _exchanges(
        self, parts: tuple[ShardedLayer, ...], workers: float, batches: Array, points: Points
    ) -> Array:
        """Gathers of activations and sums of their gradients, which nothing hides."""
        messages: Counter[Message] = Counter()
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
        library = self._case.framework.library(self.cluster.device)
        total = np.zeros(points.size)
        for message, count in messages.items():
            cost = cost_on_fabric(message.operation, group, fabric, library)
            total += count * cost.seconds(np.asarray(message.size.at(batches), dtype=float))
        return total

    def _update(self, parts: tuple[ShardedLayer, ...], memory: Array) -> Array:
        workload = self.workload
        moved = update_traffic_bytes(workload.optimiser, precision(workload.precision))
        parameters = float(sum(part.profile.parameters for part in parts))
        device = self.cluster.device
        seconds = update_seconds(
            parameters, moved, device, self.efficiency, bytes_per_second=memory
        )
        return np.asarray(seconds)
