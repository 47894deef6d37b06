"""Searching every plan: step time and memory of all of them, the best that fit."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from paceline.errors import InputError
from paceline.hardware import Cluster
from paceline.plan.alike import alike_layers
from paceline.plan.choices import PipelineSchedule
from paceline.plan.compression import NO_COMPRESSION
from paceline.plan.plan import Plan
from paceline.predictor.efficiency import Efficiency
from paceline.predictor.frameworks import framework as find_framework
from paceline.predictor.layer_arrays import Array
from paceline.predictor.predict import DEFAULT_FRAMEWORK
from paceline.predictor.prepared import PreparedStep
from paceline.predictor.replica import Replica
from paceline.predictor.search.layer_table import MODES, LayerTable
from paceline.predictor.search.memory import memory_bytes
from paceline.predictor.search.setting import Setting
from paceline.predictor.search.space import ZERO_STAGES, Degrees, Space, device_counts
from paceline.predictor.search.step_times import step_seconds
from paceline.workload.blocks import Block, blocks, part_of
from paceline.workload.graph import Graph
from paceline.workload.workload import Workload


@dataclass(frozen=True)
class Candidates:
    """Plans as columns: ``settings`` says which degrees, the rest are positions in their axes."""

    settings: tuple[tuple[Degrees, bool, Array], ...]
    setting: NDArray[np.int16]
    place: NDArray[np.int32]
    seconds: Array
    memory_bytes: Array

    @property
    def size(self) -> int:
        """Number of plans."""
        return int(self.seconds.size)

    @cached_property
    def devices(self) -> NDArray[np.int64]:
        """Devices that each plan uses."""
        return self._by_degrees(lambda degrees: degrees.devices)

    @cached_property
    def tp(self) -> NDArray[np.int64]:
        """Tensor-parallel degree of each plan."""
        return self._by_degrees(lambda degrees: np.full_like(degrees.pp, degrees.tp))

    @property
    def zero(self) -> NDArray[np.int32]:
        """Shard stage of each plan."""
        return self.place % len(ZERO_STAGES)

    @cached_property
    def layout(self) -> NDArray[np.int64]:
        """A number for each plan that those with the same tp, pp and dp share."""
        return self._by_degrees(
            lambda degrees: (np.int64(degrees.tp) << 40) + (degrees.pp << 20) + degrees.dp
        )

    def _by_degrees(self, of: Callable[[Degrees], NDArray[np.int64]]) -> NDArray[np.int64]:
        """What holds for combinations of degrees, for each plan."""
        result = np.empty(self.size, dtype=np.int64)
        for number, (degrees, _, micro_batches) in enumerate(self.settings):
            own = self.setting == number
            inner = micro_batches.size * len(MODES) * len(ZERO_STAGES)
            result[own] = of(degrees)[self.place[own] // inner]
        return result

    def best_by_layout(self, chosen: NDArray[np.bool_], most: int) -> list[int]:
        """The fastest of the ``chosen`` plans of each layout of degrees, fastest first.

        Of plans that differ by less than 0.01 % the one that does less comes first: smaller
        micro-batches, no recomputation, no sharding.
        """
        order = np.flatnonzero(chosen)
        order = order[np.lexsort((self.place[order], np.round(np.log(self.seconds[order]), 4)))]
        _, first = np.unique(self.layout[order], return_index=True)
        return [int(index) for index in order[np.sort(first)[:most]]]

    def plan(self, index: int, like: Plan) -> Plan:
        """One of them; what is not searched is as in ``like``."""
        degrees, sequence_parallel, micro_batches = self.settings[self.setting[index]]
        shape = (degrees.size, micro_batches.size, len(MODES), len(ZERO_STAGES))
        combination, micro, mode, zero = np.unravel_index(int(self.place[index]), shape)
        return replace(
            like,
            tp=degrees.tp,
            pp=int(degrees.pp[combination]),
            dp=int(degrees.dp[combination]),
            interleave=int(degrees.interleave[combination]),
            micro_batch=int(micro_batches[micro]),
            micro_batches=None,
            recompute=MODES[int(mode)],
            zero=ZERO_STAGES[int(zero)],
            sequence_parallel=sequence_parallel,
        )


@dataclass(frozen=True)
class PlanSearch:
    """A workload with ``global_batch`` samples per step on any of ``nodes`` nodes of a cluster.

    ``workload.batch`` is not used. ``like`` gives what is not searched: framework,
    synchronisation, schedule of the pipeline, attention kernels. Context and expert parallelism
    are not searched.
    """

    workload: Workload
    cluster: Cluster
    global_batch: int
    nodes: tuple[int, ...] = ()
    like: Plan = field(default_factory=Plan)
    efficiency: Efficiency | None = None

    def __post_init__(self) -> None:
        if self.like.recompute_every > 1:
            raise InputError(
                "recomputation of some blocks is not searched",
                "leave recompute_every out, or let 'paceline predict' look at one plan",
            )
        if self.like.offload or self.workload.frozen_bytes is not None:
            raise InputError(
                "plans that leave the device for its host, or hold weights in 4 bits, are not "
                "searched",
                "leave --offload and --qlora out, or let 'paceline predict' look at one plan",
            )
        if self.like.pipeline.splits_backward:
            raise InputError(
                f"the schedule {self.like.pipeline} is not searched",
                "leave it out, or let 'paceline predict' look at one plan",
            )
        if self.like.shard_group is not None:
            raise InputError(
                "groups of shards are not searched; those of a node are tried on the best plans",
                "leave shard_group out, or let 'paceline predict' look at one plan",
            )
        if self.like.cp > 1 or self.like.ep > 1 or self.like.compression != NO_COMPRESSION:
            raise InputError(
                "plans with cp, ep or compressed gradients are not searched",
                "leave them out, or let 'paceline predict' look at one plan",
            )
        if self.workload.profile.has_sparse_gradients:
            raise InputError(
                "plans of networks with sparse tables are not searched: gradients grow with "
                "the batch",
                "let 'paceline predict' look at one plan",
            )

    def run(self) -> Candidates:
        """Evaluate every plan."""
        settings = [
            Setting(table, degrees, self._case, self._parts, self.global_batch)
            for degrees, table in self._tables()
        ]
        columns: list[tuple[NDArray[np.int16], NDArray[np.int32], Array, Array]] = []
        times = step_seconds(settings, self.like.pipeline)
        for number, (setting, seconds) in enumerate(zip(settings, times, strict=True)):
            shape = (setting.degrees.size, setting.micro_batch.size, len(MODES), len(ZERO_STAGES))
            valid = np.flatnonzero(np.broadcast_to(setting.valid, shape))
            columns.append(
                (
                    np.full(valid.size, number, dtype=np.int16),
                    valid.astype(np.int32),
                    np.broadcast_to(seconds, shape).ravel()[valid],
                    np.broadcast_to(memory_bytes(setting), shape).ravel()[valid],
                )
            )
        searched = tuple(
            (setting.degrees, setting.table.sequence_parallel, setting.table.micro_batches)
            for setting in settings
        )
        return Candidates(searched, *map(np.concatenate, zip(*columns, strict=True)))

    def _tables(self) -> Iterator[tuple[Degrees, LayerTable]]:
        """Layer times for each tensor-parallel degree, with and without divided tokens."""
        for degrees in self.space.degrees():
            micro_batches = self.space.micro_batches(degrees)
            for sequence_parallel in self.space.sequence_parallel(degrees.tp):
                alike = alike_layers(self._replica.sharding, sequence_parallel)
                yield (
                    degrees,
                    LayerTable(self._replica, alike, degrees.tp, sequence_parallel, micro_batches),
                )

    @cached_property
    def space(self) -> Space:
        """What is searched."""
        counts = device_counts(self.cluster.devices_per_node, self.nodes or (self.cluster.nodes,))
        pieces = len(self._parts) if self._equal else 1
        interleaves = self.like.pipeline is not PipelineSchedule.GPIPE
        return Space(self.workload.graph, self.global_batch, counts, pieces, interleaves)

    @cached_property
    def _replica(self) -> Replica:
        plan = replace(self.like, dp=1, tp=1, pp=1, interleave=1, micro_batch=None)
        profile = find_framework(plan.framework or DEFAULT_FRAMEWORK)
        return Replica(self.workload, self.cluster, plan, profile, self.efficiency)

    @cached_property
    def _case(self) -> PreparedStep:
        return PreparedStep(self._replica)

    @cached_property
    def _parts(self) -> tuple[Block, ...]:
        return blocks(self.workload.graph)

    @cached_property
    def _equal(self) -> bool:
        return are_alike(self.workload.graph, self._parts)


def are_alike(graph: Graph, parts: Sequence[Block]) -> bool:
    """Whether the numbered nodes of all blocks are the same operations, and there are any."""
    kinds = {
        tuple(node.op for node in graph.nodes[part.first : part.last] if part_of(node.name))
        for part in parts
    }
    return len(parts) > 1 and len(kinds) == 1 and kinds != {()}
