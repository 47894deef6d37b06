"""Data-parallel steps for whole sweeps: those that the predictor tells, on arrays."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from paceline.errors import InputError
from paceline.plan.messages import messages
from paceline.plan.synchronisation import Exchange, Policy
from paceline.predictor.joined_layers import one_message_each, runs_between
from paceline.predictor.layer_arrays import Array, LayerArrays, LayerSums
from paceline.predictor.layout import Layout
from paceline.predictor.prediction import Prediction
from paceline.predictor.products import BACKWARD, FORWARD
from paceline.predictor.replica_step import tell_replica
from paceline.predictor.sharded_step import tell_fully_sharded, tell_sharded_update
from paceline.predictor.step_clocks import StepClocks
from paceline.predictor.step_corrections import StepCorrections
from paceline.predictor.step_costs import GradientExchange, LayerTime, StepCosts
from paceline.predictor.sweeps.axes import Grid, Points, cluster_at
from paceline.predictor.sweeps.network import SweptMessages, fabric_at
from paceline.predictor.sweeps.sweep import Sweep

SWEPT = (Policy.NONE, Policy.PER_TENSOR, Policy.BUCKETED, Policy.ONE_MESSAGE, Policy.SPLIT)
"""Policies whose messages do not depend on times, so that all configurations share them."""
_MOST = 2**20
"""Configurations whose step is told at a time."""
_POINTS = 1024
"""Points whose layers are summed at a time: their rows fit in a processor's cache."""


@dataclass(frozen=True)
class DataParallelSweep(Sweep):
    """Data parallelism: every device of every node is a worker with a batch of its own."""

    def __post_init__(self) -> None:
        if self.plan.shard_group is not None:
            raise InputError(
                "sweeps do not have groups of shards", "leave them out, or use 'paceline predict'"
            )
        policy = self.case.synchronisation
        if policy.policy not in SWEPT or policy.exchange is Exchange.PARAMETER_SERVER:
            raise InputError(
                f"sweeps do not have the synchronisation {policy.policy} ({policy.exchange})",
                f"take --overlap {', '.join(SWEPT)}, or 'paceline predict' for one point",
            )
        if self.workload.profile.has_sparse_gradients:
            raise InputError(
                "sweeps do not have gradients of sparse tables, which grow with the batch",
                "use 'paceline predict' for one point",
            )

    def with_corrections(self, corrections: StepCorrections) -> "DataParallelSweep":
        """The same sweep under other corrections; layers are not listed again."""
        other = replace(self, corrections=corrections)
        other.__dict__.update(_runs=self._runs, _sums=self._sums)
        return other

    def on_grid(self, grid: Grid) -> Array:
        """Seconds per step at every point of a grid, in the order of its axes."""
        links, nodes = (a.ravel() for a in np.meshgrid(grid.link, grid.nodes, indexing="ij"))
        batches = np.repeat(grid.batch, grid.flops.size)[:, None]
        result = np.empty((grid.memory.size, batches.size, links.size))
        sums = self._sums_at(grid.batch)
        for place, memory in enumerate(grid.memory):
            bandwidth = np.full(1, memory)
            sent = self._messages(links, nodes, bandwidth)
            computing = np.concatenate(
                [sums.seconds(b, grid.flops, bandwidth) for b in range(grid.batch.size)], axis=1
            )
            for own in chunks(batches.size, _MOST // links.size):
                for others in chunks(links.size, _MOST):
                    result[place, own, others] = self._steps(
                        computing[:, own, None],
                        sent.exchange(others),
                        batches[own],
                        bandwidth,
                        nodes[others],
                    )
        lengths = (grid.memory.size, grid.batch.size, *grid.shape[1:2], *grid.shape[3:])
        return np.moveaxis(result.reshape(lengths), 0, 2)

    def at(self, points: Points) -> Array:
        """Seconds per step of every configuration of a list."""
        batches, position = np.unique(points.batch, return_inverse=True)
        sums = self._sums_at(batches)
        result = np.empty(points.size)
        for own in chunks(points.size, 8 * _POINTS):
            part, place = points.part(own), position[own]
            computing = np.concatenate(
                [
                    sums.seconds(place[few], part.flops[few], part.memory[few])
                    for few in chunks(part.size, _POINTS)
                ],
                axis=1,
            )
            sent = self._messages(part.link, part.nodes, part.memory)
            result[own] = self._steps(
                computing, sent.exchange(slice(None)), part.batch, part.memory, part.nodes
            )
        return result

    def scheduled(self, values: dict[str, float]) -> Prediction:
        """The scheduler's prediction of one configuration, by names of `AXES`."""
        cluster = cluster_at(self.cluster, self.workload, values)
        plan = replace(self.case.plan, dp=cluster.devices)
        return self.predicted(round(values["batch"]), cluster, plan)

    @property
    def _shard_stage(self) -> int:
        return self.case.plan.zero or self.case.framework.shard_stage

    @cached_property
    def _runs(self) -> list[range]:
        """Layers that messages leave behind, or that are gathered, together."""
        if self._shard_stage == 3:
            return self.case.units
        layers = self.workload.profile.layers
        sizes = [float(layer.gradient_bytes.at(self.workload.batch)) for layer in layers]
        grouped = messages(self.case.synchronisation, sizes, [0.0] * len(sizes), lambda size: size)
        return runs_between(grouped, 0, len(layers))

    @cached_property
    def _gradient_bytes(self) -> list[float]:
        layers = self.workload.profile.layers
        return [sum(float(layers[i].gradient_bytes.at(1)) for i in run) for run in self._runs]

    @cached_property
    def _weight_bytes(self) -> list[float]:
        weights = self.case.replica.weight_bytes
        return [sum(weights[i] for i in run) for run in self._runs]

    @cached_property
    def _sums(self) -> dict[bytes, LayerSums]:
        """What was asked for last, by batches."""
        return {}

    def _sums_at(self, batches: Array) -> LayerSums:
        """Forward of each run (of all in one unless weights arrive), then backward of each."""
        key = batches.tobytes()
        if key not in self._sums:
            replica = self.case.replica
            forward = self._runs
            if self._shard_stage < 3 and self.case.synchronisation.policy is not Policy.SPLIT:
                forward = [range(len(self.workload.profile.layers))]
            counts = np.zeros((len(forward) + len(self._runs), 2, len(replica.kinds)))
            for number, run in enumerate(forward):
                counts[number, FORWARD] = replica.alike.counts(run)
            for number, run in enumerate(self._runs, len(forward)):
                counts[number, BACKWARD] = replica.alike.counts(run)
            self._sums.clear()
            self._sums[key] = LayerArrays(replica, replica.kinds).summed(batches, counts)
        return self._sums[key]

    def _messages(self, link: Array, nodes: Array, memory: Array) -> SweptMessages:
        """What messages take, by configuration."""
        workers = nodes * self.cluster.devices_per_node
        one = np.ones_like(workers)
        group = Layout(one, one, workers, one, one, self.cluster.devices_per_node).replicas
        return SweptMessages(
            self.case,
            one_message_each(self.case.synchronisation),
            group,
            fabric_at(self.cluster, group, link, memory),
        )

    def _steps(
        self,
        computing: Array,
        exchange: GradientExchange,
        batch: Array,
        memory: Array,
        nodes: Array,
    ) -> Array:
        """Seconds per step; ``computing`` has a row per group of layers.

        The axes behind the first, and those of the other arrays, broadcast.
        """
        workers = nodes * self.cluster.devices_per_node
        computing = computing * (self.case.modelled_factor * self.case.slowest_among(workers))
        split = len(computing) - len(self._runs)
        layers = [
            LayerTime("", computing[number] if number < split else 0.0, backward, size)
            for number, (backward, size) in enumerate(
                zip(computing[split:], self._gradient_bytes, strict=True)
            )
        ]
        several = self._costs(batch, memory, workers, is_alone=False)
        clocks = StepClocks(several.interference)
        if self._shard_stage == 0:
            tell_replica(clocks, layers, exchange, several)
        elif self._shard_stage == 3:
            units = [(number,) for number in range(len(layers))]
            tell_fully_sharded(clocks, layers, exchange, several, self._weight_bytes, units)
        else:
            tell_sharded_update(
                clocks, layers, exchange, several, self._weight_bytes, scatters_each=False
            )
        if (workers > 1).all():
            return np.asarray(clocks.seconds)
        alone = StepClocks()
        tell_replica(alone, layers, None, self._costs(batch, memory, workers, is_alone=True))
        return np.asarray(np.where(workers > 1, clocks.seconds, alone.seconds))

    def _costs(self, batch: Array, memory: Array, workers: Array, *, is_alone: bool) -> StepCosts:
        """What a step costs beside layers and messages."""
        tensors = sum(len(layer.tensors) for layer in self.workload.profile.layers)
        trained = self.workload.profile.trainable_parameters
        overhead = self.case.framework.overhead_seconds(tensors, 1 if is_alone else 2)
        shards = workers if self._shard_stage and not is_alone else 1.0
        return replace(
            self.case.costs,
            copy_seconds=self.case.costs.copy_seconds * batch / self.workload.batch,
            update_seconds=self.update_seconds(trained / shards, memory),
            overhead_seconds=overhead + (not is_alone) * self.case.applied.overhead_seconds,
        )


def chunks(size: int, most: int) -> Iterator[slice]:
    """Consecutive slices of at most ``most`` (at least one)."""
    length = max(1, most)
    for first in range(0, size, length):
        yield slice(first, min(first + length, size))
