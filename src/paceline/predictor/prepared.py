"""A job ready to be scheduled: a replica, what was measured of it, and what experience adds."""

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np

from paceline.hardware import Cluster
from paceline.plan.plan import Plan
from paceline.plan.synchronisation import Synchronisation
from paceline.predictor.around_layers import copy_seconds, stage_update_seconds
from paceline.predictor.corrections.model import Taught
from paceline.predictor.evidence import NO_EVIDENCE, Colocated, Evidence
from paceline.predictor.exchange import compressed, gradient_exchange
from paceline.predictor.frameworks import FrameworkProfile
from paceline.predictor.jitter import FloatArray, expected_maximum_lognormal, slowest_factors
from paceline.predictor.replica import Replica
from paceline.predictor.replica_step import tell_replica
from paceline.predictor.stages import Chunk, chunks_of, stage_chunks
from paceline.predictor.step_builder import StepBuilder, StepTelling
from paceline.predictor.step_clocks import StepClocks
from paceline.predictor.step_corrections import (
    NO_CORRECTIONS,
    StepCorrections,
    cluster_corrections,
)
from paceline.predictor.step_costs import GradientExchange, LayerTime, StepCosts
from paceline.predictor.work_scale import scale_alone, scale_of_baseline
from paceline.step import Step
from paceline.workload.blocks import blocks
from paceline.workload.workload import Workload

_UNCORRECTED = ("chunks", "modelled_exchange", "modelled_updates", "units", "alone")
"""What stays when only corrections change."""


@dataclass(frozen=True)
class PreparedStep:
    """A job whose step can be scheduled, again and again under other corrections.

    ``corrections`` are, unless given, those known of the cluster. ``input_seconds`` is what
    reading and preparing a batch takes, beside the step where the framework prefetches.
    ``scale`` multiplies all layer times in place of what evidence and corrections ask for.
    ``taught`` is what published measurements say of such a job, where it is corrected by them.
    """

    replica: Replica
    evidence: Evidence = NO_EVIDENCE
    corrections: StepCorrections | None = None
    input_seconds: float = 0.0
    scale: float | None = None
    taught: Taught | None = None

    @property
    def workload(self) -> Workload:
        """What one replica trains."""
        return self.replica.workload

    @property
    def cluster(self) -> Cluster:
        """Where it runs."""
        return self.replica.cluster

    @property
    def plan(self) -> Plan:
        """How the workload is spread."""
        return self.replica.plan

    @property
    def framework(self) -> FrameworkProfile:
        """What the framework adds."""
        return self.replica.framework

    @cached_property
    def applied(self) -> StepCorrections:
        """The corrections that were given, else those known of the cluster."""
        return self.corrections or cluster_corrections(self.cluster.name)

    @cached_property
    def synchronisation(self) -> Synchronisation:
        """The plan's own, else that of the framework."""
        return self.plan.synchronisation or self.framework.synchronisation

    def with_corrections(self, corrections: StepCorrections) -> "PreparedStep":
        """The same job under other corrections; what they do not touch is not computed again."""
        other = self._sharing(replace(self, corrections=corrections))
        if self._has_lone_evidence:
            other.__dict__["work_scale"] = self.work_scale
        return other

    def with_scale(self, scale: float) -> "PreparedStep":
        """The same job with all layer times multiplied."""
        return self._sharing(replace(self, scale=scale))

    def _sharing(self, other: "PreparedStep") -> "PreparedStep":
        """Another with what this one has computed and corrections do not change."""
        other.__dict__.update({name: getattr(self, name) for name in _UNCORRECTED})
        return other

    def with_fixed_work(self) -> "PreparedStep":
        """The same step with its layer times as a number of their own.

        Whoever changes device or plan from there sees the change, and not the evidence again.
        """
        evidence = replace(self.evidence, alone_seconds=None, baseline=None)
        return replace(self, evidence=evidence, scale=self.work_scale * self.modelled_factor)

    @cached_property
    def _seconds(self) -> float:
        if self.plan.pp > 1:
            return self._pipelined(timeline=False).seconds
        clocks = StepClocks(self.costs.interference)
        self._tell(clocks)
        return float(clocks.seconds)

    def seconds(self) -> float:
        """Seconds of the step; its tasks are not listed for that."""
        return self._seconds

    # What does not depend on corrections.

    @cached_property
    def chunks(self) -> tuple[Chunk, ...]:
        """Parts of the network that the pipeline cuts it into; one without a pipeline."""
        if self.plan.pp == 1:
            return (Chunk(0, len(self.workload.graph.nodes), 0.0),)
        return chunks_of(self.replica)

    @cached_property
    def units(self) -> list[range]:
        """Runs of layers that fully sharded replicas gather together."""
        return [range(part.first, part.last) for part in blocks(self.workload.graph)]

    @cached_property
    def modelled_exchange(self) -> GradientExchange | None:
        """Messages among replicas, all-reduce as measured where it was; None for one replica."""
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
    def alone(self) -> "PreparedStep":
        """One device on the same batch, by the same measured parts."""
        cluster, plan = self.cluster.shaped(1, 1), self.plan.on_one_device()
        replica = replace(self.replica, cluster=cluster, plan=plan)
        evidence = replace(self.evidence, spread=None, baseline=None)
        return PreparedStep(replica, evidence, NO_CORRECTIONS, scale=1.0)

    # What evidence and corrections make of it.

    @property
    def _has_lone_evidence(self) -> bool:
        """Whether the work is known from one device, which no correction touches."""
        baseline = self.evidence.baseline
        lone = baseline is not None and baseline.job.plan.devices == 1
        return lone or self.evidence.alone_seconds is not None

    @cached_property
    def work_scale(self) -> float:
        """Factor on all layer times with which what was measured is reproduced."""
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
        """What corrections multiply modelled layers with; nothing where the work is known."""
        known = self.evidence.alone_seconds is not None or self.evidence.baseline is not None
        return 1.0 if known or self.scale is not None else self.applied.compute_factor

    @cached_property
    def colocated(self) -> Colocated | None:
        """What the processes of one node do to each other, where that was measured."""
        processes = min(self.plan.devices, self.cluster.devices_per_node)
        return self.evidence.colocation.get(processes) if processes > 1 else None

    @property
    def variation(self) -> float | None:
        """Coefficient of variation of workers' times; None if nobody knows."""
        if self.evidence.spread is not None:
            return self.evidence.spread
        return self.applied.variation_on(self.cluster.nodes)

    @property
    def sharing_factor(self) -> float:
        """How much longer a device computes beside the others of its node."""
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
        """The same factor for other numbers of devices that share no machine."""
        variation = self.variation
        if not variation or self.synchronisation.asynchronous:
            return np.ones(1)
        return slowest_factors(variation, workers)

    @property
    def _beside_layers_factor(self) -> float:
        """The same of input and update: where processes share a machine all of a step is slower."""
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
        """Messages among replicas; None when there is only one. No correction of measured ones."""
        exchange, factor = self.modelled_exchange, self.applied.bandwidth_factor
        measured = self.plan.holders in self.evidence.all_reduce
        if exchange is None or factor == 1.0 or measured:
            return exchange
        return replace(exchange, bandwidth_factor=factor)

    @cached_property
    def updates(self) -> list[float]:
        """Seconds of each stage's update."""
        return [self._beside_layers_factor * seconds for seconds in self.modelled_updates]

    @cached_property
    def costs(self) -> StepCosts:
        """What a step costs beside layers and messages."""
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
            else self._beside_layers_factor * shown,
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
        """What the framework adds to one device; measured layers of a whole step contain it."""
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
        builder = StepBuilder(self.costs.interference)
        self._tell(builder)
        return builder.build(self.plan.label)

    def _tell(self, builder: StepTelling) -> None:
        """The step without a pipeline, as tasks or as clocks."""
        replica, plan, count = self.replica, self.plan, self.replica.micro_batches
        if self.exchange is None or plan.zero == 0:
            tell_replica(builder, self.layers, self.exchange, self.costs, micro_batches=count)
            return
        from paceline.predictor.sharded_step import tell_fully_sharded, tell_sharded_update

        shared = (builder, self.layers, self.exchange, self.costs, replica.weight_bytes)
        if plan.zero == 3:
            tell_fully_sharded(*shared, self.units, micro_batches=count)
        else:
            tell_sharded_update(*shared, scatters_each=plan.zero == 2, micro_batches=count)

    def _pipelined(self, *, timeline: bool) -> Step:
        from paceline.predictor.pipeline_step import pipeline_step

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
        """What of the input shows in a step of one device alone, where that was measured."""
        return self.evidence.input_seconds or 0.0

    def ideal_seconds(self) -> float:
        """One device's share of the arithmetic, if dividing it cost nothing and none was double.

        The whole network as one device would compute it, over the devices of a replica.
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
        """How much longer a device takes because others of its node work at the same time."""
        rest = self.modelled_updates[0] + self.shown_input_seconds
        return (self.sharing_factor - 1.0) * (self._work_seconds() + rest)

    def waiting_seconds(self) -> float:
        """How much longer the slowest device computes than the mean one."""
        longer = (self.slowest_factor - 1.0) * self.sharing_factor
        work = self._work_seconds()
        if self.colocated is not None and self.cluster.nodes == 1:
            work += self.modelled_updates[0] + self.shown_input_seconds
        return longer * work

    def _work_seconds(self) -> float:
        """Layers of a device's share of the network in a step, the device alone and as the mean."""
        kinds = self.replica.kinds_at(self.work_scale, self.modelled_factor)
        each = [x.forward_seconds + x.backward_seconds + x.recompute_seconds for x in kinds]
        return self.replica.micro_batches * self.replica.total(each) / self.plan.pp

    def division_seconds(self) -> float:
        """How much longer computing takes because tokens and experts are shared out unequally."""
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
