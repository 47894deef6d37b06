"""The model of a step: a replica with evidence and corrections, ready to be scheduled."""

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np

from paceline.hardware import Cluster
from paceline.predictor.comm.gradient_exchange import compressed, gradient_exchange
from paceline.predictor.evidence import NO_EVIDENCE, Colocated, Evidence
from paceline.predictor.framework_profiles import FrameworkProfile
from paceline.predictor.kernels.copy_and_update import copy_seconds, stage_update_seconds
from paceline.predictor.kernels.measured_scale import scale_alone, scale_of_baseline
from paceline.predictor.partition.pipeline_stages import Chunk, chunks_of, stage_chunks
from paceline.predictor.partition.replica import Replica
from paceline.predictor.plan.plan import Plan
from paceline.predictor.plan.sync_policy import Synchronisation
from paceline.predictor.schedule.array_schedule import ArraySchedule
from paceline.predictor.schedule.ddp_step import schedule_ddp
from paceline.predictor.schedule.jitter import (
    FloatArray,
    expected_maximum_lognormal,
    slowest_factors,
)
from paceline.predictor.schedule.step_costs import GradientExchange, LayerTime, StepCosts
from paceline.predictor.schedule.task_schedule import ScheduleBackend, TaskSchedule
from paceline.predictor.uncertainty.correction_model import FittedCorrections
from paceline.predictor.uncertainty.step_corrections import (
    NO_CORRECTIONS,
    StepCorrections,
    cluster_corrections,
)
from paceline.step import Step
from paceline.workload.blocks import blocks
from paceline.workload.workload import Workload

_UNCORRECTED = ("chunks", "modelled_exchange", "modelled_updates", "units", "alone")
"""Cached attributes that do not depend on corrections."""


@dataclass(frozen=True)
class StepModel:
    """A job whose step can be scheduled repeatedly under different corrections.

    ``corrections`` default to those of the cluster. ``input_seconds`` is the time to read and
    prepare a batch; it overlaps the step if the framework prefetches. ``scale`` multiplies all
    layer times and replaces the factors of evidence and corrections. ``fitted`` are corrections
    fitted to published measurements, with their variances.
    """

    replica: Replica
    evidence: Evidence = NO_EVIDENCE
    corrections: StepCorrections | None = None
    input_seconds: float = 0.0
    scale: float | None = None
    fitted: FittedCorrections | None = None

    @property
    def workload(self) -> Workload:
        """The workload of one replica."""
        return self.replica.workload

    @property
    def cluster(self) -> Cluster:
        """The cluster."""
        return self.replica.cluster

    @property
    def plan(self) -> Plan:
        """The plan."""
        return self.replica.plan

    @property
    def framework(self) -> FrameworkProfile:
        """The framework profile."""
        return self.replica.framework

    @cached_property
    def applied(self) -> StepCorrections:
        """The given corrections, else those of the cluster."""
        return self.corrections or cluster_corrections(self.cluster.name)

    @cached_property
    def synchronisation(self) -> Synchronisation:
        """The synchronisation of the plan, else of the framework."""
        return self.plan.synchronisation or self.framework.synchronisation

    def with_corrections(self, corrections: StepCorrections) -> "StepModel":
        """The same job under other corrections; independent quantities are reused."""
        other = self._sharing(replace(self, corrections=corrections))
        if self._has_lone_evidence:
            other.__dict__["work_scale"] = self.work_scale
        return other

    def with_scale(self, scale: float) -> "StepModel":
        """The same job with all layer times multiplied."""
        return self._sharing(replace(self, scale=scale))

    def _sharing(self, other: "StepModel") -> "StepModel":
        """``other`` with the cached attributes that do not depend on corrections."""
        other.__dict__.update({name: getattr(self, name) for name in _UNCORRECTED})
        return other

    def with_fixed_work(self) -> "StepModel":
        """The same step with fixed layer times instead of evidence.

        Changes of device or plan then take effect instead of being scaled back to the evidence.
        """
        evidence = replace(self.evidence, alone_seconds=None, baseline=None)
        return replace(self, evidence=evidence, scale=self.work_scale * self.modelled_factor)

    @cached_property
    def _seconds(self) -> float:
        if self.plan.pp > 1:
            return self._pipelined(timeline=False).seconds
        clocks = ArraySchedule(self.costs.interference)
        self._schedule_on(clocks)
        return float(clocks.seconds)

    def seconds(self) -> float:
        """Seconds of the step, computed without listing its tasks."""
        return self._seconds

    # What does not depend on corrections.

    @cached_property
    def chunks(self) -> tuple[Chunk, ...]:
        """Pipeline chunks of the network; one without a pipeline."""
        if self.plan.pp == 1:
            return (Chunk(0, len(self.workload.graph.nodes), 0.0),)
        return chunks_of(self.replica)

    @cached_property
    def units(self) -> list[range]:
        """FSDP units: runs of layers that are gathered together."""
        return [range(part.first, part.last) for part in blocks(self.workload.graph)]

    @cached_property
    def modelled_exchange(self) -> GradientExchange | None:
        """Messages among replicas, with measured all-reduce if any; None for one replica."""
        exchange = gradient_exchange(self.replica, self.synchronisation)
        measured = self.evidence.all_reduce.get(self.plan.holders)
        if exchange is None or measured is None:
            return exchange
        return exchange.with_all_reduce(measured)

    @cached_property
    def modelled_updates(self) -> list[float]:
        """Seconds of each stage's update on one device alone."""
        if self.evidence.update_seconds is None:
            return stage_update_seconds(self.replica, self.chunks)
        shards = self.plan.shard_degree if self.plan.zero >= 1 else 1
        sizes = [part.profile.parameters for part in self.replica.parts]
        whole = self.workload.profile.parameters or 1
        return [
            self.evidence.update_seconds
            * sum(
                sizes[i]
                for chunk in stage_chunks(self.plan, self.chunks, stage)
                for i in chunk.positions
            )
            / (shards * whole)
            for stage in range(self.plan.pp)
        ]

    @cached_property
    def alone(self) -> "StepModel":
        """The step model of one device with the same batch and evidence."""
        cluster, plan = self.cluster.shaped(1, 1), self.plan.on_one_device()
        replica = replace(self.replica, cluster=cluster, plan=plan)
        evidence = replace(self.evidence, spread=None, baseline=None)
        return StepModel(replica, evidence, NO_CORRECTIONS, scale=1.0)

    # What evidence and corrections make of it.

    @property
    def _has_lone_evidence(self) -> bool:
        """Whether layer times are measured on one device, which no correction changes."""
        baseline = self.evidence.baseline
        lone = baseline is not None and baseline.job.plan.devices == 1
        return lone or self.evidence.alone_seconds is not None

    @cached_property
    def work_scale(self) -> float:
        """Factor on all layer times that reproduces the measured step."""
        if self.scale is not None:
            return self.scale
        if self.evidence.alone_seconds is not None:
            return scale_alone(self.alone, self.evidence.alone_seconds)
        baseline = self.evidence.baseline
        if baseline is not None:
            return scale_of_baseline(baseline.job.with_corrections(self.applied), baseline.seconds)
        return 1.0

    @property
    def modelled_factor(self) -> float:
        """Correction factor on modelled layers; 1 if layer times are measured."""
        known = self.evidence.alone_seconds is not None or self.evidence.baseline is not None
        return 1.0 if known or self.scale is not None else self.applied.compute_factor

    @cached_property
    def colocated(self) -> Colocated | None:
        """Measured contention among the processes of one node."""
        processes = min(self.plan.devices, self.cluster.devices_per_node)
        return self.evidence.colocation.get(processes) if processes > 1 else None

    @property
    def variation(self) -> float | None:
        """Coefficient of variation of workers' times; None if unknown."""
        if self.evidence.spread is not None:
            return self.evidence.spread
        return self.applied.variation_on(self.cluster.nodes)

    @property
    def sharing_factor(self) -> float:
        """Slowdown of a device by the other devices of its node."""
        return 1.0 if self.colocated is None else self.colocated.slowdown

    @cached_property
    def slowest_factor(self) -> float:
        """Computing time of the slowest of all devices over the mean one."""
        if self.synchronisation.asynchronous:
            return 1.0
        if self.colocated is not None and self.cluster.nodes == 1:
            return self.colocated.slowest
        variation = self.variation
        return _slowest_of(variation, self.plan.devices) if variation else 1.0

    def slowest_among(self, workers: FloatArray) -> FloatArray:
        """The same factor for other numbers of devices on separate machines."""
        variation = self.variation
        if not variation or self.synchronisation.asynchronous:
            return np.ones(1)
        return slowest_factors(variation, workers)

    @property
    def _input_and_update_factor(self) -> float:
        """Slowdown of input and update: contention on one machine affects the whole step."""
        if self.colocated is None:
            return 1.0
        waiting = self.slowest_factor if self.cluster.nodes == 1 else 1.0
        return self.colocated.slowdown * waiting

    @cached_property
    def layers(self) -> list[LayerTime]:
        """Layers of the slowest device, gradients compressed."""
        scale = self.work_scale * self.sharing_factor * self.slowest_factor
        bandwidth = self.applied.bandwidth_factor
        own = self.replica.layers_at(scale, self.modelled_factor, bandwidth)
        return compressed(own, self.replica)

    @cached_property
    def exchange(self) -> GradientExchange | None:
        """Messages among replicas; None for one replica. Measured ones are not corrected."""
        exchange, factor = self.modelled_exchange, self.applied.bandwidth_factor
        measured = self.plan.holders in self.evidence.all_reduce
        if exchange is None or factor == 1.0 or measured:
            return exchange
        return replace(exchange, bandwidth_factor=factor)

    @cached_property
    def updates(self) -> list[float]:
        """Seconds of each stage's update."""
        return [self._input_and_update_factor * seconds for seconds in self.modelled_updates]

    @cached_property
    def costs(self) -> StepCosts:
        """Costs of a step besides layers and messages."""
        library = self.framework.library(self.cluster.device)
        overhead = self._own_overhead_seconds
        if self.plan.holders > 1:
            overhead += self._tensors * self.framework.tensor_overhead_seconds
            overhead += self.applied.overhead_seconds
        interference = self.applied.interference
        shown = self.evidence.input_seconds
        return StepCosts(
            input_seconds=self.input_seconds
            if shown is None
            else self._input_and_update_factor * shown,
            copy_seconds=copy_seconds(self.replica),
            input_overlapped=self.framework.input_overlapped and shown is None,
            update_seconds=self.updates[0],
            message_overhead_seconds=self.framework.message_overhead_seconds
            + library.message_overhead_seconds,
            overhead_seconds=overhead,
            interference=library.interference if interference is None else interference,
        )

    @property
    def _own_overhead_seconds(self) -> float:
        """Framework overhead on one device; 0 if measured layers of a whole step contain it."""
        known = self.evidence.layers and self.evidence.alone_seconds is not None
        return 0.0 if known else self.framework.step_overhead_seconds

    @property
    def _tensors(self) -> int:
        """Gradient tensors of one device."""
        count = self.replica.total([len(part.profile.tensors) for part in self.replica.kinds])
        return int(count) // self.plan.pp

    # The step, and what it is made of.

    def step(self) -> Step:
        """The scheduled step."""
        return self._scheduled

    @cached_property
    def _scheduled(self) -> Step:
        if self.plan.pp > 1:
            return self._pipelined(timeline=True)
        builder = TaskSchedule(self.costs.interference)
        self._schedule_on(builder)
        return builder.build(self.plan.label)

    def _schedule_on(self, builder: ScheduleBackend) -> None:
        """Schedule the step without a pipeline on a backend."""
        replica, plan, count = self.replica, self.plan, self.replica.micro_batches
        if self.exchange is None or plan.zero == 0:
            schedule_ddp(builder, self.layers, self.exchange, self.costs, micro_batches=count)
            return
        from paceline.predictor.schedule.fsdp_step import schedule_fsdp, schedule_zero12

        shared = (builder, self.layers, self.exchange, self.costs, replica.weight_bytes)
        if plan.zero == 3:
            schedule_fsdp(*shared, self.units, micro_batches=count)
        else:
            schedule_zero12(*shared, scatters_each=plan.zero == 2, micro_batches=count)

    def _pipelined(self, *, timeline: bool) -> Step:
        from paceline.predictor.schedule.pipeline_step import pipeline_step

        return pipeline_step(
            self.replica,
            self.layers,
            self.chunks,
            self.exchange,
            self.costs,
            self.updates,
            self.plan.label,
            self.applied.bandwidth_factor,
            timeline=timeline,
        )

    @property
    def shown_input_seconds(self) -> float:
        """Measured exposed input time of one device alone; 0 if not measured."""
        return self.evidence.input_seconds or 0.0

    def ideal_seconds(self) -> float:
        """One device's share of the arithmetic, without the cost of dividing it.

        The time of the whole network on one device, divided by the devices of a replica.
        """
        replica, plan = self.replica, self.plan
        if plan.tp > 1 or plan.ep > 1 or plan.cp > 1:
            replica = replace(replica, plan=plan.undivided())
        kinds = replica.kinds_at(self.work_scale, self.modelled_factor)
        each = [x.forward_seconds + x.backward_seconds for x in kinds]
        work = self.replica.micro_batches * replica.total(each)
        update = sum(self.modelled_updates) / len(self.modelled_updates)
        shares = plan.tp * plan.cp * plan.pp
        alone = self._own_overhead_seconds + self.shown_input_seconds
        return work / shares + update + alone

    def sharing_seconds(self) -> float:
        """Seconds per step lost to contention within a node."""
        rest = self.modelled_updates[0] + self.shown_input_seconds
        return (self.sharing_factor - 1.0) * (self._work_seconds() + rest)

    def waiting_seconds(self) -> float:
        """Seconds per step by which the slowest device exceeds the mean (jitter)."""
        longer = (self.slowest_factor - 1.0) * self.sharing_factor
        work = self._work_seconds()
        if self.colocated is not None and self.cluster.nodes == 1:
            work += self.modelled_updates[0] + self.shown_input_seconds
        return longer * work

    def _work_seconds(self) -> float:
        """Computing time per step of the mean device, without contention."""
        kinds = self.replica.kinds_at(self.work_scale, self.modelled_factor)
        each = [x.forward_seconds + x.backward_seconds + x.recompute_seconds for x in kinds]
        return self.replica.micro_batches * self.replica.total(each) / self.plan.pp

    def division_seconds(self) -> float:
        """Seconds per step lost to unequal or split work in context and expert parallelism."""
        replica = self.replica
        if self.plan.cp == 1 and self.plan.ep == 1:
            return 0.0
        factor = self.work_scale * self.modelled_factor
        found = replica.kinds_at(self.work_scale, self.modelled_factor)
        longer = [
            (1 + again) * (own.forward_seconds - factor * alone.forward_seconds)
            + own.backward_seconds
            - factor * alone.backward_seconds
            for own, alone, again in zip(found, replica.computed, replica.kept.again, strict=True)
        ]
        return replica.micro_batches * replica.total(longer) / self.plan.pp


@lru_cache(maxsize=4096)
def _slowest_of(variation: float, workers: int) -> float:
    return float(expected_maximum_lognormal(1.0, variation, workers))
