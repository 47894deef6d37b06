"""Data-parallel steps of sweeps: the predictor's schedules on arrays."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from paceline.errors import InputError
from paceline.predictor.comm.buckets import messages
from paceline.predictor.comm.gradient_exchange import exchange_among
from paceline.predictor.kernels.gemm_arrays import BACKWARD, FORWARD
from paceline.predictor.kernels.layer_arrays import Array, LayerArrays, LayerSums
from paceline.predictor.partition.rank_layout import Layout
from paceline.predictor.plan.sync_policy import Exchange, Policy
from paceline.predictor.prediction import Prediction
from paceline.predictor.schedule.coalesce_layers import one_message_each, runs_between
from paceline.predictor.schedule.device_step import DeviceStep
from paceline.predictor.schedule.host_time import block_host_seconds
from paceline.predictor.schedule.step_costs import GradientExchange, LayerTime, StepCosts
from paceline.predictor.sweep.sweep import Sweep
from paceline.predictor.sweep.sweep_axes import Grid, Points, cluster_at
from paceline.predictor.sweep.sweep_network import fabric_at, some_of
from paceline.predictor.uncertainty.applied_corrections import slowest_among
from paceline.predictor.uncertainty.step_corrections import StepCorrections
from paceline.workload.blocks import blocks

SWEPT = (Policy.NONE, Policy.PER_TENSOR, Policy.BUCKETED, Policy.ONE_MESSAGE, Policy.SPLIT)
"""Policies whose messages do not depend on times, so all configurations share them."""
_MOST = 2**20
"""Configurations scheduled at a time."""
SHORTEST_SECONDS = 1e-12
_POINTS = 1024
"""Points whose layers are summed at a time: small enough for the CPU cache."""


@dataclass(frozen=True)
class DataParallelSweep(Sweep):
    """Data parallelism: every device of every node is a worker with a batch of its own."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.plan.shard_group is not None:
            raise InputError(
                "sweep does not support shard groups", "omit them, or use 'paceline predict'"
            )
        policy = self.parts.synchronisation
        if policy.policy not in SWEPT or policy.exchange is Exchange.PARAMETER_SERVER:
            raise InputError(
                f"sweep does not support the synchronisation {policy.policy} ({policy.exchange})",
                f"use --overlap {', '.join(SWEPT)}, or 'paceline predict' for one point",
            )
        if self.workload.profile.has_sparse_gradients:
            raise InputError(
                "sweep does not support sparse embedding tables",
                "use 'paceline predict' for one point",
            )

    def on_grid(self, grid: Grid) -> Array:
        """Seconds per step at every point of a grid, in the order of its axes."""
        links, nodes = (a.ravel() for a in np.meshgrid(grid.link, grid.nodes, indexing="ij"))
        batches = np.repeat(grid.batch, grid.flops.size)[:, None]
        result = np.empty((grid.memory.size, batches.size, links.size))
        sums = self._sums_at(grid.batch)
        for row, memory in enumerate(grid.memory):
            bandwidth = np.full(1, memory)
            sent = self._messages(links, nodes, bandwidth, self.job.corrections)
            computing = np.concatenate(
                [sums.seconds(b, grid.flops, bandwidth) for b in range(grid.batch.size)], axis=1
            )
            for own in chunks(batches.size, _MOST // links.size):
                for others in chunks(links.size, _MOST):
                    result[row, own, others] = self._steps(
                        computing[:, own, None],
                        some_of(sent, others),
                        batches[own],
                        bandwidth,
                        nodes[others],
                        self.job.corrections,
                    )
        lengths = (grid.memory.size, grid.batch.size, *grid.shape[1:2], *grid.shape[3:])
        return np.moveaxis(result.reshape(lengths), 0, 2)

    def at(self, points: Points, corrections: StepCorrections | None = None) -> Array:
        """Seconds per step of every configuration of a list, under other corrections if given."""
        applied = corrections or self.job.corrections
        batches, position = np.unique(points.batch, return_inverse=True)
        sums = self._sums_at(batches)
        result = np.empty(points.size)
        for own in chunks(points.size, 8 * _POINTS):
            part, index = points.part(own), position[own]
            computing = np.concatenate(
                [
                    sums.seconds(index[few], part.flops[few], part.memory[few])
                    for few in chunks(part.size, _POINTS)
                ],
                axis=1,
            )
            sent = self._messages(part.link, part.nodes, part.memory, applied)
            result[own] = self._steps(
                computing,
                sent,
                part.batch,
                part.memory,
                part.nodes,
                applied,
            )
        return result

    def scheduled(self, values: dict[str, float]) -> Prediction:
        """The scheduler's prediction of one configuration, by names of `AXES`."""
        cluster = cluster_at(self.cluster, self.workload, values)
        plan = replace(self.job.plan, dp=cluster.devices)
        return self.predicted(round(values["batch"]), cluster, plan)

    @property
    def _shard_stage(self) -> int:
        return self.job.plan.zero or self.job.framework.shard_stage

    @cached_property
    def _runs(self) -> list[range]:
        """Runs of layers per message, or per FSDP unit."""
        if self._shard_stage == 3:
            return [range(unit.first, unit.last) for unit in blocks(self.workload.graph)]
        sizes = self._layer_gradient_bytes
        grouped = messages(self.parts.synchronisation, sizes, [0.0] * len(sizes), lambda size: size)
        return runs_between(grouped, 0, len(sizes))

    @cached_property
    def _layer_gradient_bytes(self) -> list[float]:
        """Bytes of each layer's gradients in the format that the framework sends."""
        return [float(size) for size in self.parts.gradient_bytes[self.parts.classes.of_layer]]

    @cached_property
    def _gradient_bytes(self) -> list[float]:
        return [sum(self._layer_gradient_bytes[i] for i in run) for run in self._runs]

    @cached_property
    def _weight_bytes(self) -> list[float]:
        weights = self.parts.weight_bytes[self.parts.classes.of_layer]
        return [float(weights[run.start : run.stop].sum()) for run in self._runs]

    @cached_property
    def _sums(self) -> dict[bytes, LayerSums]:
        """The last result, by batches."""
        return {}

    def _sums_at(self, batches: Array) -> LayerSums:
        """Forward of each run (in one piece unless weights arrive in messages), then backward."""
        key = batches.tobytes()
        if key not in self._sums:
            parts = self.parts
            forward = self._runs
            if self._shard_stage < 3 and self.parts.synchronisation.policy is not Policy.SPLIT:
                forward = [range(len(self.workload.profile.layers))]
            counts = np.zeros((len(forward) + len(self._runs), 2, len(parts.kinds)))
            for number, run in enumerate(forward):
                counts[number, FORWARD] = parts.classes.counts(run)
            for number, run in enumerate(self._runs, len(forward)):
                counts[number, BACKWARD] = parts.classes.counts(run)
            self._sums.clear()
            self._sums[key] = LayerArrays(parts, parts.kinds, self.efficiency).summed(
                batches, counts
            )
        return self._sums[key]

    def _messages(
        self, link: Array, nodes: Array, memory: Array, corrections: StepCorrections
    ) -> GradientExchange:
        """Cost of messages by configuration."""
        workers = nodes * self.cluster.devices_per_node
        one = np.ones_like(workers)
        group = Layout(one, one, workers, one, one, self.cluster.devices_per_node).replicas
        fabric = fabric_at(self.cluster, group, link, memory)
        each = one_message_each(self.parts.synchronisation)
        exchange = exchange_among(group, self.parts, each, fabric)
        return replace(exchange, bandwidth_factor=corrections.bandwidth_factor)

    def _steps(
        self,
        computing: Array,
        exchange: GradientExchange,
        batch: Array,
        memory: Array,
        nodes: Array,
        corrections: StepCorrections,
    ) -> Array:
        """Seconds per step; ``computing`` has a row per group of layers.

        The axes behind the first, and those of the other arrays, broadcast.
        """
        workers = nodes * self.cluster.devices_per_node
        slowest = slowest_among(self.job, corrections, workers)
        computing = computing * (corrections.compute_factor * slowest)
        busy = computing.sum(axis=0)
        least = len(blocks(self.workload.graph)) * block_host_seconds(self.parts)
        computing = computing * np.maximum(1.0, least / np.maximum(busy, SHORTEST_SECONDS))
        split = len(computing) - len(self._runs)
        layers = [
            LayerTime("", computing[number] if number < split else 0.0, backward, size)
            for number, (backward, size) in enumerate(
                zip(computing[split:], self._gradient_bytes, strict=True)
            )
        ]
        several = DeviceStep(
            layers,
            exchange,
            self._costs(batch, memory, workers, corrections, is_alone=False),
            self._shard_stage,
            self._weight_bytes,
            [(number,) for number in range(len(layers))],
        )
        if (workers > 1).all():
            return np.asarray(several.array_seconds())
        costs = self._costs(batch, memory, workers, corrections, is_alone=True)
        alone = DeviceStep(layers, None, costs)
        return np.asarray(np.where(workers > 1, several.array_seconds(), alone.array_seconds()))

    def _costs(
        self,
        batch: Array,
        memory: Array,
        workers: Array,
        corrections: StepCorrections,
        *,
        is_alone: bool,
    ) -> StepCosts:
        """Costs of a step besides layers and messages."""
        costs = self.costs(corrections)
        tensors = sum(len(layer.tensors) for layer in self.workload.profile.layers)
        trained = self.workload.profile.trainable_parameters
        overhead = self.job.framework.overhead_seconds(tensors, 1 if is_alone else 2)
        shards = workers if self._shard_stage and not is_alone else 1.0
        return replace(
            costs,
            copy_seconds=costs.copy_seconds * batch / self.workload.batch,
            update_seconds=self.update_seconds(trained / shards, memory),
            overhead_seconds=overhead + (not is_alone) * corrections.overhead_seconds,
        )


def chunks(size: int, most: int) -> Iterator[slice]:
    """Consecutive slices of at most ``most`` (at least one)."""
    length = max(1, most)
    for first in range(0, size, length):
        yield slice(first, min(first + length, size))
