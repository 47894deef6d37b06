"""Exhaustive search of plans: step time and memory of all of them."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from paceline.errors import InputError
from paceline.hardware import Cluster
from paceline.predictor.framework_profiles import framework as find_framework
from paceline.predictor.kernels.efficiency import Efficiency
from paceline.predictor.kernels.layer_arrays import Array
from paceline.predictor.memory.fit_probability import LIKELY, room_bytes
from paceline.predictor.partition.layer_classes import unique_layers
from paceline.predictor.partition.partition import Partition, partition
from paceline.predictor.plan.plan import Plan
from paceline.predictor.plan.plan_choices import PipelineSchedule
from paceline.predictor.predict import DEFAULT_FRAMEWORK
from paceline.predictor.prediction_inputs import PredictionInputs
from paceline.predictor.schedule.timeline import step_costs
from paceline.predictor.search.layer_table import MODES, LayerTable
from paceline.predictor.search.plan_constraints import NOT_MODELLED, PlanConstraints
from paceline.predictor.search.plan_grid import PlanGrid
from paceline.predictor.search.plan_memory import memory_bytes
from paceline.predictor.search.search_space import ZERO_STAGES, Degrees, Space, device_counts
from paceline.predictor.search.step_times import step_seconds
from paceline.predictor.uncertainty.applied_corrections import apply_corrections
from paceline.predictor.uncertainty.covariates import Program
from paceline.predictor.uncertainty.step_corrections import cluster_corrections
from paceline.workload.blocks import Block, blocks, part_of
from paceline.workload.graph import Graph
from paceline.workload.workload import Workload


@dataclass(frozen=True)
class Candidates:
    """Plans as columns: ``grid`` indexes ``grids``, ``position`` is the flat index in its axes."""

    grids: tuple[tuple[Degrees, bool, Array], ...]
    grid: NDArray[np.int16]
    position: NDArray[np.int32]
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
        return self.position % len(ZERO_STAGES)

    @cached_property
    def layout(self) -> NDArray[np.int64]:
        """An identifier of the combination of tp, pp and dp of each plan."""
        return self._by_degrees(
            lambda degrees: (np.int64(degrees.tp) << 40) + (degrees.pp << 20) + degrees.dp
        )

    def _by_degrees(self, of: Callable[[Degrees], NDArray[np.int64]]) -> NDArray[np.int64]:
        """Values by combination of degrees, expanded to plans."""
        result = np.empty(self.size, dtype=np.int64)
        for number, (degrees, _, micro_batches) in enumerate(self.grids):
            own = self.grid == number
            inner = micro_batches.size * len(MODES) * len(ZERO_STAGES)
            result[own] = of(degrees)[self.position[own] // inner]
        return result

    def best_by_layout(self, chosen: NDArray[np.bool_], most: int) -> list[int]:
        """The fastest of the ``chosen`` plans of each layout of degrees, fastest first.

        Among plans within 0.01 % the simpler one comes first: smaller micro-batch, no
        recomputation, no sharding.
        """
        order = np.flatnonzero(chosen)
        order = order[np.lexsort((self.position[order], np.round(np.log(self.seconds[order]), 4)))]
        _, first = np.unique(self.layout[order], return_index=True)
        return [int(index) for index in order[np.sort(first)[:most]]]

    def plan(self, index: int, like: Plan) -> Plan:
        """The plan at ``index``; fields that are not searched are those of ``like``."""
        degrees, sequence_parallel, micro_batches = self.grids[self.grid[index]]
        shape = (degrees.size, micro_batches.size, len(MODES), len(ZERO_STAGES))
        combination, micro, mode, zero = np.unravel_index(int(self.position[index]), shape)
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

    ``workload.batch`` is not used. ``like`` gives the fields that are not searched: framework,
    synchronisation, pipeline schedule, attention kernels; ``program`` describes the training
    program, ``fixed`` the fields of plans that the user states, ``known`` plans to compare.
    """

    workload: Workload
    cluster: Cluster
    global_batch: int
    nodes: tuple[int, ...] = ()
    like: Plan = field(default_factory=Plan)
    efficiency: Efficiency | None = None
    program: Program | None = None
    fixed: PlanConstraints = field(default_factory=PlanConstraints)
    known: tuple[Plan, ...] = ()

    def __post_init__(self) -> None:
        usual, like = Plan(), self.like
        wrong = [name for name in NOT_MODELLED if getattr(like, name) != getattr(usual, name)]
        if wrong or like.pipeline.splits_backward:
            raise InputError(
                f"the arrays of a search do not model {', '.join(wrong or ['split backward'])}",
                "give such fields as constraints",
            )
        if self.workload.profile.has_sparse_gradients:
            raise InputError(
                "advise does not support sparse embedding tables",
                "predict one plan with 'paceline predict'",
            )

    def run(self) -> Candidates:
        """Evaluate every plan."""
        applied = apply_corrections(self._job, self._job.corrections)
        costs = step_costs(self._job, self._whole, applied)
        grids = [
            PlanGrid(table, degrees, self._job, costs, self._blocks, self.global_batch, self.stages)
            for degrees, table in self._tables()
        ]
        columns: list[tuple[NDArray[np.int16], NDArray[np.int32], Array, Array]] = []
        times = step_seconds(grids, self.like.pipeline)
        for number, (grid, seconds) in enumerate(zip(grids, times, strict=True)):
            shape = (grid.degrees.size, grid.micro_batch.size, len(MODES), len(ZERO_STAGES))
            valid = np.flatnonzero(np.broadcast_to(grid.valid, shape))
            columns.append(
                (
                    np.full(valid.size, number, dtype=np.int16),
                    valid.astype(np.int32),
                    np.broadcast_to(seconds, shape).ravel()[valid],
                    np.broadcast_to(memory_bytes(grid), shape).ravel()[valid],
                )
            )
        searched = tuple(
            (grid.degrees, grid.table.sequence_parallel, grid.table.micro_batches) for grid in grids
        )
        found = Candidates(searched, *map(np.concatenate, zip(*columns, strict=True)))
        return self.fixed.restricted(found, self.global_batch)

    @property
    def predicts_each(self) -> bool:
        """Whether plans have properties that the arrays do not model."""
        return bool(self.fixed.added) or self.workload.frozen_bytes is not None

    @property
    def stages(self) -> tuple[int, ...]:
        """ZeRO stages of plans with replicas: the fixed one, that of FSDP, else all."""
        fixed = self.fixed.searched.get("zero")
        own = find_framework(self.like.framework or DEFAULT_FRAMEWORK).shard_stage
        return ZERO_STAGES if fixed is None and not own else (own if fixed is None else fixed,)

    @property
    def usual_stage(self) -> int:
        """The ZeRO stage of variations: 1 if possible."""
        return 1 if 1 in self.stages else max(self.stages)

    def room_bytes(self, memory_bytes: Array) -> float:
        """Bytes that a plan may need: it likely fits, or possibly if no plan likely fits."""
        capacity = self.cluster.device.known_memory_bytes
        likely = room_bytes(capacity, LIKELY)
        return likely if np.min(memory_bytes) <= likely else room_bytes(capacity)

    def _tables(self) -> Iterator[tuple[Degrees, LayerTable]]:
        """Layer times for each tensor-parallel degree, with and without sequence parallelism."""
        for degrees in self.space.degrees():
            micro_batches = self.space.micro_batches(degrees)
            for sequence_parallel in self.space.sequence_parallel(degrees.tp):
                classes = unique_layers(self._whole.sharding, sequence_parallel)
                yield (
                    degrees,
                    LayerTable(
                        self._whole,
                        self.efficiency,
                        classes,
                        degrees.tp,
                        sequence_parallel,
                        micro_batches,
                    ),
                )

    @cached_property
    def space(self) -> Space:
        """The search space."""
        counts = device_counts(self.cluster.devices_per_node, self.nodes or (self.cluster.nodes,))
        pieces = len(self._blocks) if self._equal else 1
        interleaves = self.like.pipeline is not PipelineSchedule.GPIPE
        return Space(self.workload.graph, self.global_batch, counts, pieces, interleaves)

    @cached_property
    def _job(self) -> PredictionInputs:
        """One replica on one device."""
        plan = replace(
            self.like, dp=1, tp=1, pp=1, interleave=1, micro_batch=None, micro_batches=None
        )
        profile = find_framework(plan.framework or DEFAULT_FRAMEWORK)
        corrections = cluster_corrections(self.cluster.name)
        workload = replace(self.workload, frozen_bytes=None)
        return PredictionInputs(workload, self.cluster, plan, profile, corrections=corrections)

    @cached_property
    def _whole(self) -> Partition:
        """The undivided network."""
        job = self._job
        return partition(job.workload, job.cluster, job.plan, job.framework)

    @cached_property
    def _blocks(self) -> tuple[Block, ...]:
        return blocks(self.workload.graph)

    @cached_property
    def _equal(self) -> bool:
        return are_equal_blocks(self.workload.graph, self._blocks)


def are_equal_blocks(graph: Graph, parts: Sequence[Block]) -> bool:
    """Whether all blocks have the same numbered operations, and at least one."""
    kinds = {
        tuple(node.op for node in graph.nodes[part.first : part.last] if part_of(node.name))
        for part in parts
    }
    return len(parts) > 1 and len(kinds) == 1 and kinds != {()}
