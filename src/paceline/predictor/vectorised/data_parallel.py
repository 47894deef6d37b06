"""Data-parallel steps for whole sweeps: the same equations as the scheduler's, on arrays."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from paceline.errors import InputError
from paceline.plan.messages import Message, messages
from paceline.plan.synchronisation import Exchange, Policy
from paceline.predictor.collectives import cost_on_fabric
from paceline.predictor.layout import Layout
from paceline.predictor.prediction import Prediction
from paceline.predictor.step_corrections import StepCorrections
from paceline.predictor.step_costs import GradientExchange
from paceline.predictor.vectorised.axes import Array, Grid, Points, cluster_at
from paceline.predictor.vectorised.layer_rows import LayerRows, all_forward, backward_of
from paceline.predictor.vectorised.network import fabric_at, slowest_factor
from paceline.predictor.vectorised.overlap import CHUNK, exposed_seconds
from paceline.predictor.vectorised.sweep import Sweep

VECTORISED = (Policy.NONE, Policy.PER_TENSOR, Policy.BUCKETED, Policy.ONE_MESSAGE)
"""Policies whose messages do not depend on times, so that all configurations share them."""


@dataclass(frozen=True)
class DataParallelSweep(Sweep):
    """Data parallelism: every device of every node is a worker with a batch of its own."""

    def __post_init__(self) -> None:
        policy = self.case.synchronisation
        if policy.policy not in VECTORISED or policy.exchange is Exchange.PARAMETER_SERVER:
            raise InputError(
                f"sweeps do not have the synchronisation {policy.policy} ({policy.exchange})",
                f"take --overlap {', '.join(VECTORISED)}, or 'paceline predict' for one point",
            )
        if self.workload.profile.has_sparse_gradients:
            raise InputError(
                "sweeps do not have gradients of sparse tables, which grow with the batch",
                "use 'paceline predict' for one point",
            )
        if self.case.plan.zero or self.case.framework.shard_stage:
            raise InputError(
                "sweeps are of unsharded data parallelism", "leave --zero out, or use 'predict'"
            )

    def with_corrections(self, corrections: StepCorrections) -> "DataParallelSweep":
        """The same sweep under other corrections; layers and messages are not listed again."""
        other = replace(self, corrections=corrections)
        other.__dict__.update(_messages=self._messages, _rows=self._rows)
        return other

    def on_grid(self, grid: Grid) -> Array:
        """Seconds per step at every point of a grid, in the order of its axes."""
        links, nodes = (a.ravel() for a in np.meshgrid(grid.link, grid.nodes, indexing="ij"))
        batches = np.repeat(grid.batch, grid.flops.size)[:, None]
        result = np.empty((grid.memory.size, batches.size, links.size))
        rows = self._rows.at(grid.batch)
        for place, memory in enumerate(grid.memory):
            bandwidth = np.full(1, memory)
            network = self._message_seconds(links, nodes, bandwidth)
            computing = np.concatenate(
                [rows.seconds(b, grid.flops, bandwidth) for b in range(grid.batch.size)], axis=1
            )
            for own in chunks(batches.size, CHUNK // links.size):
                for others in chunks(links.size, CHUNK):
                    result[place, own, others] = self._steps(
                        computing[:, own, None],
                        network[:, None, others],
                        batches[own],
                        bandwidth,
                        nodes[others],
                    )
        lengths = (grid.memory.size, grid.batch.size, *grid.shape[1:2], *grid.shape[3:])
        return np.moveaxis(result.reshape(lengths), 0, 2)

    def at(self, points: Points) -> Array:
        """Seconds per step of every configuration of a list."""
        batches, position = np.unique(points.batch, return_inverse=True)
        rows = self._rows.at(batches)
        result = np.empty(points.size)
        for own in chunks(points.size, CHUNK // 8):
            part = points.part(own)
            computing = rows.seconds(position[own], part.flops, part.memory)
            network = self._message_seconds(part.link, part.nodes, part.memory)
            result[own] = self._steps(computing, network, part.batch, part.memory, part.nodes)
        return result

    def scheduled(self, values: dict[str, float]) -> Prediction:
        """The scheduler's prediction of one configuration, by names of `AXES`."""
        cluster = cluster_at(self.cluster, self.workload, values)
        plan = replace(self.case.plan, dp=cluster.devices)
        return self.predicted(round(values["batch"]), cluster, plan)

    @cached_property
    def _messages(self) -> list[Message]:
        layers = self.workload.profile.layers
        sizes = [float(layer.gradient_bytes.at(self.workload.batch)) for layer in layers]
        return messages(self.case.synchronisation, sizes, [0.0] * len(sizes), lambda size: size)

    @cached_property
    def _rows(self) -> LayerRows:
        """Forward; backward up to each message; backward after the last one."""
        count = len(self.workload.profile.layers)
        groups = [all_forward(count)]
        done = count
        for message in self._messages:
            first = message.layers[-1]
            groups.append(backward_of(range(first, done)))
            done = first
        groups.append(backward_of(range(done)))
        case = self.case
        return LayerRows(
            self.workload.profile,
            groups,
            self.cluster.device,
            self.workload.precision,
            case.framework,
            self.efficiency,
        )

    def _message_seconds(self, link: Array, nodes: Array, memory: Array) -> Array:
        """Seconds of each message, by configuration."""
        if not self._messages:
            return np.zeros((0, link.size))
        workers = nodes * self.cluster.devices_per_node
        one = np.ones_like(workers)
        group = Layout(one, one, workers, one, one, self.cluster.devices_per_node).replicas
        fabric = fabric_at(self.cluster, group, link, memory)
        library = self.case.framework.library(self.cluster.device)
        cost = cost_on_fabric("all_reduce", group, fabric, library)
        delay = self.case.framework.message_latency_seconds
        exchange = GradientExchange(
            self.case.synchronisation,
            lambda size: delay + cost.seconds(size),
            bandwidth_factor=self.case.applied.bandwidth_factor,
        )
        sizes = np.array([message.size_bytes for message in self._messages])
        return np.asarray(exchange.message(sizes[:, None]))

    def _steps(
        self, computing: Array, network: Array, batch: Array, memory: Array, nodes: Array
    ) -> Array:
        """Seconds per step; ``computing`` has a row per group of layers, ``network`` per message.

        The axes behind the first, and those of the other arrays, broadcast.
        """
        costs, synchronisation = self.case.costs, self.case.synchronisation
        workers = nodes * self.cluster.devices_per_node
        computing = computing * (self.case.modelled_factor * slowest_factor(self.case, workers))
        segments, rest = computing[1:-1], computing[-1]
        alone = computing.sum(axis=0)
        launch = costs.message_overhead_seconds / synchronisation.every_steps
        if synchronisation.leaves_after_backward:
            added = network.sum(axis=0) + launch * len(network)
        else:
            exposed = exposed_seconds(segments + launch, rest, network, costs.interference)
            added = exposed.tail + exposed.stretched + launch * len(network)
        tensors = sum(len(layer.tensors) for layer in self.workload.profile.layers)
        overhead = self.case.framework.overhead_seconds
        added = added + overhead(tensors, 2) + self.case.applied.overhead_seconds
        added = np.where(workers > 1, added, overhead(tensors, 1))
        trained = self.workload.profile.trainable_parameters
        seconds = alone + self.update_seconds(trained, memory) + added
        return self.with_input(seconds, batch)


def chunks(size: int, most: int) -> Iterator[slice]:
    """Consecutive slices of at most ``most`` (at least one)."""
    length = max(1, most)
    for first in range(0, size, length):
        yield slice(first, min(first + length, size))
