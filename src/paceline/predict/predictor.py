"""predict: a workload on a cluster under a plan, as a scheduled step with its memory."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from paceline.hardware import Cluster
from paceline.plan.blocks import blocks
from paceline.plan.plan import Plan
from paceline.plan.synchronisation import Synchronisation
from paceline.plan.tensor_parallel import check_divisible
from paceline.predict.efficiency import Efficiency
from paceline.predict.exchange import compressed, gradient_exchange
from paceline.predict.frameworks import Framework
from paceline.predict.frameworks import framework as find_framework
from paceline.predict.inputs import copy_seconds
from paceline.predict.jitter import expected_maximum_lognormal
from paceline.predict.pipeline_step import pipeline_step
from paceline.predict.plan_memory import plan_memory
from paceline.predict.prediction import Prediction
from paceline.predict.replica import Replica
from paceline.predict.replica_step import replica_step
from paceline.predict.sharded_step import fully_sharded_step, sharded_update_step
from paceline.predict.stages import Chunk, chunks_of
from paceline.predict.step_costs import GradientExchange, LayerTime, StepCosts
from paceline.predict.systems import System, system_of
from paceline.predict.update import stage_update_seconds
from paceline.step import Step
from paceline.workload.workload import Workload

DEFAULT_FRAMEWORK = "torch-ddp"
MODEL_ERROR = 0.12
"""Standard error (of the logarithm) where layer times come from the catalogue: a judgement
until 'paceline validate' has been run on rows of the same kind."""
MODEL_ERROR_MEASURED = 0.05
"""The same where layer times were measured."""


def predict(
    workload: Workload,
    cluster: Cluster,
    plan: Plan,
    *,
    efficiency: Efficiency | None = None,
    measured_layers: Sequence[LayerTime] = (),
    input_seconds: float = 0.0,
    jitter: float | None = None,
    relative_error: float | None = None,
) -> Prediction:
    """Predict one training step of ``workload`` on ``cluster`` under ``plan``.

    ``measured_layers`` (by name, for one micro-batch) replace what the device model says.
    ``input_seconds`` is what reading and preparing a batch takes. ``jitter`` is the coefficient
    of variation of workers' times; unless given, what is known of the cluster, else none.
    """
    plan.check_devices(cluster.devices)
    check_divisible(workload.graph, plan.tp)
    profile = find_framework(plan.framework or DEFAULT_FRAMEWORK)
    if plan.zero == 0 and profile.shard_stage > 0:
        plan = replace(plan, zero=profile.shard_stage)
    replica = Replica(workload, cluster, plan, profile, efficiency, tuple(measured_layers))
    case = _Case(replica, input_seconds, jitter)
    error = relative_error
    if error is None:
        error = MODEL_ERROR_MEASURED if measured_layers else MODEL_ERROR
    return Prediction(
        workload=workload,
        cluster=cluster,
        plan=plan,
        framework=profile.name,
        step=case.step(),
        memory=plan_memory(replica, case.chunks, case.synchronisation),
        ideal_seconds=case.ideal_seconds(),
        waiting_seconds=case.waiting_seconds(),
        training_flops=float(workload.cost.training_flops) * plan.dp,
        relative_error=error,
        notes=case.notes(),
    )


@dataclass(frozen=True)
class _Case:
    """A replica with everything around it that a step needs."""

    replica: Replica
    input_seconds: float
    jitter: float | None

    @property
    def plan(self) -> Plan:
        return self.replica.plan

    @property
    def framework(self) -> Framework:
        return self.replica.framework

    @cached_property
    def system(self) -> System:
        return system_of(self.replica.cluster.name)

    @cached_property
    def synchronisation(self) -> Synchronisation:
        return self.plan.synchronisation or self.framework.synchronisation

    @cached_property
    def chunks(self) -> tuple[Chunk, ...]:
        if self.plan.pp == 1:
            return (Chunk(0, len(self.replica.layers), 0.0),)
        return chunks_of(self.replica)

    @cached_property
    def exchange(self) -> GradientExchange | None:
        return gradient_exchange(self.replica, self.synchronisation)

    @cached_property
    def slowest_factor(self) -> float:
        """Computing time of the slowest of all devices over the mean one."""
        variation = self.jitter if self.jitter is not None else self.system.jitter
        if not variation or self.synchronisation.asynchronous:
            return 1.0
        return float(expected_maximum_lognormal(1.0, variation, self.plan.devices))

    @cached_property
    def layers(self) -> list[LayerTime]:
        """Layers of the slowest device, gradients compressed."""
        factor = self.slowest_factor
        own = compressed(self.replica.layers, self.replica)
        if factor == 1.0:
            return own
        return [
            replace(
                layer,
                forward_seconds=factor * layer.forward_seconds,
                backward_seconds=factor * layer.backward_seconds,
                recompute_seconds=factor * layer.recompute_seconds,
            )
            for layer in own
        ]

    @cached_property
    def updates(self) -> list[float]:
        return stage_update_seconds(self.replica, self.chunks)

    @cached_property
    def costs(self) -> StepCosts:
        library = self.framework.library(self.replica.cluster.device)
        overhead = self.system.message_overhead_seconds
        if overhead is None:
            overhead = self.framework.message_overhead_seconds + library.message_overhead_seconds
        interference = self.system.interference
        return StepCosts(
            input_seconds=self.input_seconds,
            copy_seconds=copy_seconds(self.replica),
            input_overlapped=self.framework.input_overlapped,
            update_seconds=self.updates[0],
            message_overhead_seconds=overhead,
            overhead_seconds=self.framework.step_overhead_seconds,
            interference=library.interference if interference is None else interference,
        )

    def step(self) -> Step:
        """The scheduled step."""
        replica, plan, label = self.replica, self.plan, self.plan.label
        if plan.pp > 1:
            return pipeline_step(
                replica, self.layers, self.chunks, self.exchange, self.costs, self.updates, label
            )
        if self.exchange is None or plan.zero == 0:
            return replica_step(
                self.layers,
                self.exchange,
                self.costs,
                micro_batches=replica.micro_batches,
                label=label,
            )
        if plan.zero == 3:
            units = [range(part.first, part.last) for part in blocks(replica.workload.graph)]
            return fully_sharded_step(
                self.layers,
                self.exchange,
                self.costs,
                replica.weight_bytes,
                units,
                micro_batches=replica.micro_batches,
                label=label,
            )
        return sharded_update_step(
            self.layers,
            self.exchange,
            self.costs,
            replica.weight_bytes,
            scatters_each=plan.zero == 2,
            micro_batches=replica.micro_batches,
            label=label,
        )

    def ideal_seconds(self) -> float:
        """Arithmetic of one device's share: the mean over stages, all micro-batches."""
        work = sum(x.forward_seconds + x.backward_seconds for x in self.replica.layers)
        update = sum(self.updates) / len(self.updates)
        stages = self.plan.pp
        return self.replica.micro_batches * work / stages + update + self.costs.overhead_seconds

    def waiting_seconds(self) -> float:
        """How much longer the slowest device computes than the mean one."""
        work = sum(
            x.forward_seconds + x.backward_seconds + x.recompute_seconds
            for x in self.replica.layers
        )
        return (self.slowest_factor - 1.0) * self.replica.micro_batches * work / self.plan.pp

    def notes(self) -> tuple[str, ...]:
        """What is not known, and what the framework's profile takes for granted."""
        notes = []
        if self.input_seconds == 0:
            notes.append("reading and preparing the input is taken to keep up")
        if self.jitter is None and self.system.jitter is None and self.plan.devices > 1:
            notes.append("workers are taken to be equally fast: nobody measured their spread here")
        return tuple(notes)
