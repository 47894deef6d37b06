"""What each segment takes under data and under model parallelism, and what changing over costs."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from paceline.errors import InputError
from paceline.hardware import Cluster
from paceline.plan.plan import Plan
from paceline.plan.synchronisation import Exchange, Policy
from paceline.predictor.efficiency import Efficiency
from paceline.predictor.evidence import Evidence
from paceline.predictor.frameworks import FrameworkProfile
from paceline.predictor.frameworks import framework as find_framework
from paceline.predictor.per_layer.segments import Segment, Way, segments
from paceline.predictor.predict import DEFAULT_FRAMEWORK
from paceline.predictor.prepared import PreparedStep
from paceline.predictor.replica import Replica
from paceline.predictor.step_costs import LayerTime, StepCosts
from paceline.workload.workload import Workload


@dataclass(frozen=True)
class PerLayerCosts:
    """A workload on all devices of a cluster, ready to be spread segment by segment.

    ``workload`` has the batch of one data-parallel worker; segments under model parallelism see
    the samples of all workers. Filters may be divided into fractions. Each layer's gradient is
    a message of its own, under backward unless the framework sends after it.
    """

    workload: Workload
    cluster: Cluster
    plan: Plan
    efficiency: Efficiency | None = None
    input_seconds: float = 0.0
    jitter: float | None = None

    def __post_init__(self) -> None:
        profile = find_framework(self.plan.framework or DEFAULT_FRAMEWORK)
        policy = self.plan.synchronisation or profile.synchronisation
        if policy.exchange is Exchange.PARAMETER_SERVER:
            raise InputError(
                "a choice per layer sums gradients with all-reduce, not parameter servers",
                "take another --framework, e.g. torch-ddp",
            )
        if self.plan.zero or profile.shard_stage:
            raise InputError(
                "a choice per layer keeps whole weights on data-parallel devices",
                "take a framework without sharding, e.g. torch-ddp",
            )
        if self.cluster.devices == 1:
            raise InputError("one device divides nothing", "take two devices or more")

    @cached_property
    def segments(self) -> tuple[Segment, ...]:
        """What is spread one way each."""
        return segments(self.workload.graph)

    @cached_property
    def data(self) -> PreparedStep:
        """Everything data parallel, one message per layer."""
        policy = Policy.NONE if self.sends_after_backward else Policy.PER_TENSOR
        usual = self.plan.synchronisation or self._framework.synchronisation
        own = Plan(
            dp=self.cluster.devices,
            framework=self.plan.framework,
            synchronisation=replace(usual, policy=policy),
            optimiser_state=self.plan.optimiser_state,
        )
        return self._case(self.workload, own)

    @cached_property
    def model(self) -> PreparedStep:
        """Everything model parallel by filter."""
        samples = self.workload.global_batch(self.cluster.devices)
        own = Plan(
            tp=self.cluster.devices,
            framework=self.plan.framework,
            optimiser_state=self.plan.optimiser_state,
        )
        return self._case(self.workload.with_batch(samples), own)

    @cached_property
    def sends_after_backward(self) -> bool:
        """Whether the framework's gradients wait for the end of backward."""
        usual = self.plan.synchronisation or self._framework.synchronisation
        return usual.leaves_after_backward

    @cached_property
    def changing_seconds(self) -> tuple[float, ...]:
        """Of each segment but the first: samples of all for features of all, one way.

        That is what a data-parallel segment behind a model-parallel one needs, forward and
        again backward. The other way round costs nothing more: a model-parallel segment
        gathers its input and scatters the sum of its gradient whichever way it is divided.
        """
        replica = self.model.replica
        cost = replica.cost("all_to_all", replica.layout.tensor)
        share = self.workload.batch
        return tuple(
            float(cost.seconds(replica.sharding.output_bytes(own.source).at(share)))
            for own in self.segments[1:]
        )

    @cached_property
    def update_seconds_per_parameter(self) -> float:
        """What the update takes for each further parameter of a device."""
        whole, share = self._parameters(self.data), self._parameters(self.model)
        return (self.data.updates[0] - self.model.updates[0]) / (whole - share)

    def parameters(self, segment: Segment, way: Way) -> int:
        """Trained parameters of a segment that one device holds."""
        parts = self.case(way).replica.parts
        return sum(parts[i].profile.trainable_parameters for i in segment.positions)

    def tensors(self, segment: Segment) -> int:
        """Gradient tensors of a segment."""
        return sum(len(self.data.replica.parts[i].profile.tensors) for i in segment.positions)

    def case(self, way: Way) -> PreparedStep:
        """The case in which everything is spread one way."""
        return self.data if way is Way.DATA else self.model

    def segment_layers(self, number: int, way: Way, before: Way | None) -> list[LayerTime]:
        """Times of one device's part of the layers of a segment, behind one spread ``before``.

        Gradients that no message sums count as no bytes.
        """
        own = self.segments[number]
        layers = self.case(way).layers[own.first : own.last]
        if way is Way.MODEL:
            return [replace(layer, gradient_bytes=0.0) for layer in layers]
        if before is not Way.MODEL:
            return layers
        seconds = self.changing_seconds[number - 1]
        first = replace(
            layers[0],
            forward_exchange_seconds=layers[0].forward_exchange_seconds + seconds,
            backward_exchange_seconds=layers[0].backward_exchange_seconds + seconds,
        )
        return [first, *layers[1:]]

    def layers(self, ways: Sequence[Way]) -> list[LayerTime]:
        """Times of one device's part of every layer."""
        before: tuple[Way | None, ...] = (None, *ways[:-1])
        return [
            layer
            for number, (way, earlier) in enumerate(zip(ways, before, strict=True))
            for layer in self.segment_layers(number, way, earlier)
        ]

    def segment_seconds(self, number: int, way: Way) -> float:
        """Computing, exchanges and gradient messages of a segment if nothing overlapped."""
        exchange = self.data.exchange
        assert exchange is not None, "several devices exchange gradients"
        seconds = 0.0
        for layer in self.segment_layers(number, way, None):
            seconds += layer.whole_forward_seconds + layer.whole_backward_seconds
            if layer.gradient_bytes > 0:
                seconds += float(exchange.message(layer.gradient_bytes))
        return seconds

    def step_costs(self, ways: Sequence[Way]) -> StepCosts:
        """What a step costs beside layers and messages."""
        data, model = self.data.costs, self.model.costs
        shares = [
            (self.parameters(own, way), self.tensors(own) if way is Way.DATA else 0)
            for own, way in zip(self.segments, ways, strict=True)
        ]
        held = sum(parameters for parameters, _ in shares)
        less = self._parameters(self.data) - held
        tensors = sum(count for _, count in shares)
        return replace(
            data,
            copy_seconds=self.case(ways[0]).costs.copy_seconds,
            update_seconds=data.update_seconds - less * self.update_seconds_per_parameter,
            overhead_seconds=model.overhead_seconds
            + tensors * self._framework.tensor_overhead_seconds,
        )

    def _case(self, workload: Workload, plan: Plan) -> PreparedStep:
        replica = Replica(workload, self.cluster, plan, self._framework, self.efficiency)
        evidence = Evidence(spread=self.jitter)
        return PreparedStep(replica, evidence, input_seconds=self.input_seconds)

    @cached_property
    def _framework(self) -> FrameworkProfile:
        return find_framework(self.plan.framework or DEFAULT_FRAMEWORK)

    @staticmethod
    def _parameters(case: PreparedStep) -> int:
        return sum(part.profile.trainable_parameters for part in case.replica.parts)
