"""A replica with everything around it that a step needs: costs, messages, chunks, waiting."""

from dataclasses import dataclass, replace
from functools import cached_property

from paceline.plan.blocks import blocks
from paceline.plan.plan import Plan
from paceline.plan.synchronisation import Synchronisation
from paceline.predictor.exchange import compressed, gradient_exchange
from paceline.predictor.frameworks import FrameworkProfile
from paceline.predictor.inputs import copy_seconds
from paceline.predictor.jitter import expected_maximum_lognormal
from paceline.predictor.pipeline_step import pipeline_step
from paceline.predictor.replica import Replica
from paceline.predictor.replica_step import replica_step
from paceline.predictor.sharded_step import fully_sharded_step, sharded_update_step
from paceline.predictor.stages import Chunk, chunks_of
from paceline.predictor.step_costs import GradientExchange, LayerTime, StepCosts
from paceline.predictor.systems import System, system_of
from paceline.predictor.update import stage_update_seconds
from paceline.step import Step


@dataclass(frozen=True)
class Case:
    """A replica with everything around it that a step needs."""

    replica: Replica
    input_seconds: float
    jitter: float | None

    @property
    def plan(self) -> Plan:
        """How the workload is spread."""
        return self.replica.plan

    @property
    def framework(self) -> FrameworkProfile:
        """What the framework adds."""
        return self.replica.framework

    @cached_property
    def system(self) -> System:
        """What was measured of the cluster in training."""
        return system_of(self.replica.cluster.name)

    @cached_property
    def synchronisation(self) -> Synchronisation:
        """The plan's own, else that of the framework."""
        return self.plan.synchronisation or self.framework.synchronisation

    @cached_property
    def chunks(self) -> tuple[Chunk, ...]:
        """Parts of the network that the pipeline cuts it into; one without a pipeline."""
        if self.plan.pp == 1:
            return (Chunk(0, len(self.replica.layers), 0.0),)
        return chunks_of(self.replica)

    @cached_property
    def exchange(self) -> GradientExchange | None:
        """Messages among replicas; None when there is only one."""
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
        """Seconds of each stage's update."""
        return stage_update_seconds(self.replica, self.chunks)

    @cached_property
    def costs(self) -> StepCosts:
        """What a step costs beside layers and messages."""
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
            overhead_seconds=self.framework.overhead_seconds(self._tensors, self.plan.shard_degree),
            interference=library.interference if interference is None else interference,
        )

    @property
    def _tensors(self) -> int:
        """Gradient tensors of one device."""
        count = sum(len(part.profile.tensors) for part in self.replica.parts)
        return count // self.plan.pp

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
        """One device's share of the arithmetic, if dividing it cost nothing and none was double.

        The whole network as one device would compute it, over the devices of a replica.
        """
        replica, plan = self.replica, self.plan
        layers = replica.layers
        if plan.tp > 1 or plan.ep > 1 or plan.cp > 1:
            undivided = replace(plan, tp=1, ep=1, cp=1, sequence_parallel=False)
            layers = replace(replica, plan=undivided).layers
        work = replica.micro_batches * sum(x.forward_seconds + x.backward_seconds for x in layers)
        update = sum(self.updates) / len(self.updates)
        shares = plan.tp * plan.cp * plan.pp
        return work / shares + update + self.costs.overhead_seconds

    def waiting_seconds(self) -> float:
        """How much longer the slowest device computes than the mean one."""
        work = sum(
            x.forward_seconds + x.backward_seconds + x.recompute_seconds
            for x in self.replica.layers
        )
        return (self.slowest_factor - 1.0) * self.replica.micro_batches * work / self.plan.pp

    def notes(self) -> tuple[str, ...]:
        """What is not known, and what the plan cannot do."""
        notes = []
        if self.input_seconds == 0:
            notes.append("reading and preparing the input is taken to keep up")
        if self.jitter is None and self.system.jitter is None and self.plan.devices > 1:
            notes.append("workers are taken to be equally fast: nobody measured their spread here")
        if self.replica.workload.cost.training_flops == 0:
            notes.append("what the layers compute and keep is not known: memory is a lower bound")
        if self.plan.tp > 1 and not self.replica.sharding.divides:
            notes.append("no layer of this model can be divided by tp: every device does it all")
        return tuple(notes)
