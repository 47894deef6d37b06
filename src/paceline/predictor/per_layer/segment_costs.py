"""Cost of each segment under data and model parallelism, and of switching between them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from paceline.errors import InputError
from paceline.hardware import Cluster
from paceline.predictor.comm.replica_comm import cost_among
from paceline.predictor.evidence import Evidence
from paceline.predictor.framework_profiles import FrameworkProfile
from paceline.predictor.framework_profiles import framework as find_framework
from paceline.predictor.kernels.efficiency import Efficiency
from paceline.predictor.per_layer.segments import Segment, Way, segments
from paceline.predictor.plan.plan import Plan
from paceline.predictor.plan.sync_policy import Exchange, Policy
from paceline.predictor.predict import DEFAULT_FRAMEWORK, schedule_job
from paceline.predictor.prediction_inputs import PredictionInputs
from paceline.predictor.schedule.device_times import named_layers
from paceline.predictor.schedule.step_costs import LayerTime, StepCosts
from paceline.predictor.schedule.timeline import Timeline
from paceline.predictor.uncertainty.step_corrections import cluster_corrections
from paceline.workload.workload import Workload


@dataclass(frozen=True)
class PerLayerCosts:
    """Costs of a workload on all devices of a cluster by segment.

    ``workload`` has the batch of one data-parallel worker; model-parallel segments process the
    samples of all workers. Shares of filters may be fractions. Each layer's gradient is a separate
    message that overlaps backward unless the framework sends after backward.
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
                "--per-layer does not support parameter servers",
                "use another --framework, e.g. torch-ddp",
            )
        if self.plan.zero or profile.shard_stage:
            raise InputError(
                "--per-layer does not support sharded weights",
                "use a framework without sharding, e.g. torch-ddp",
            )
        if self.cluster.devices == 1:
            raise InputError("--per-layer needs at least 2 devices", "use more devices")

    @cached_property
    def segments(self) -> tuple[Segment, ...]:
        """The segments, each parallelised in one way."""
        return segments(self.workload.graph)

    @cached_property
    def data(self) -> Timeline:
        """Everything data parallel, one message per layer."""
        policy = Policy.NONE if self.sends_after_backward else Policy.PER_TENSOR
        usual = self.plan.synchronisation or self._framework.synchronisation
        own = Plan(
            dp=self.cluster.devices,
            framework=self.plan.framework,
            synchronisation=replace(usual, policy=policy),
            optimizer_state=self.plan.optimizer_state,
        )
        return self._case(self.workload, own)

    @cached_property
    def model(self) -> Timeline:
        """Everything model parallel by filter."""
        samples = self.workload.global_batch(self.cluster.devices)
        own = Plan(
            tp=self.cluster.devices,
            framework=self.plan.framework,
            optimizer_state=self.plan.optimizer_state,
        )
        return self._case(self.workload.with_batch(samples), own)

    @cached_property
    def sends_after_backward(self) -> bool:
        """Whether the framework sends gradients after backward."""
        usual = self.plan.synchronisation or self._framework.synchronisation
        return usual.leaves_after_backward

    @cached_property
    def changing_seconds(self) -> tuple[float, ...]:
        """All-to-all from features to samples before each segment but the first, one direction.

        A data-parallel segment after a model-parallel one needs it in forward and in backward.
        The opposite switch is free: a model-parallel segment gathers its input and scatters its
        gradient however the input is divided.
        """
        parts = self.model.step.parts
        cost = cost_among(parts, "all_to_all", parts.layout.tensor)
        share = self.workload.batch
        return tuple(
            float(cost.seconds(parts.sharding.output_bytes(own.source).at(share)))
            for own in self.segments[1:]
        )

    @cached_property
    def update_seconds_per_parameter(self) -> float:
        """Seconds of the update per parameter of a device."""
        whole, share = self._parameters(self.data), self._parameters(self.model)
        return (self.data.updates[0] - self.model.updates[0]) / (whole - share)

    def parameters(self, segment: Segment, way: Way) -> int:
        """Trained parameters of a segment that one device holds."""
        layers = self.case(way).step.parts.layers
        return sum(layers[i].profile.trainable_parameters for i in segment.positions)

    def tensors(self, segment: Segment) -> int:
        """Gradient tensors of a segment."""
        layers = self.data.step.parts.layers
        return sum(len(layers[i].profile.tensors) for i in segment.positions)

    def case(self, way: Way) -> Timeline:
        """The scheduled step with one choice for all segments."""
        return self.data if way is Way.DATA else self.model

    def case_layers(self, way: Way) -> list[LayerTime]:
        """Times of every layer with one choice for all segments."""
        return self._data_layers if way is Way.DATA else self._model_layers

    @cached_property
    def _data_layers(self) -> list[LayerTime]:
        return named_layers(self.data.step.parts, self.data.times)

    @cached_property
    def _model_layers(self) -> list[LayerTime]:
        return named_layers(self.model.step.parts, self.model.times)

    def segment_layers(self, number: int, way: Way, before: Way | None) -> list[LayerTime]:
        """Layer times of a segment on one device, with ``before`` for the previous segment.

        Gradients of model-parallel layers are not exchanged, so they count 0 bytes.
        """
        own = self.segments[number]
        layers = self.case_layers(way)[own.first : own.last]
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
        """Times of every layer on one device."""
        before: tuple[Way | None, ...] = (None, *ways[:-1])
        return [
            layer
            for number, (way, earlier) in enumerate(zip(ways, before, strict=True))
            for layer in self.segment_layers(number, way, earlier)
        ]

    def segment_seconds(self, number: int, way: Way) -> float:
        """Computing, exchanges and gradient messages of a segment without overlap."""
        exchange = self.data.gradients
        assert exchange is not None, "several devices exchange gradients"
        seconds = 0.0
        for layer in self.segment_layers(number, way, None):
            seconds += layer.whole_forward_seconds + layer.whole_backward_seconds
            if layer.gradient_bytes > 0:
                seconds += float(exchange.message(layer.gradient_bytes))
        return seconds

    def step_costs(self, ways: Sequence[Way]) -> StepCosts:
        """Costs of a step besides layers and messages."""
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

    def _case(self, workload: Workload, plan: Plan) -> Timeline:
        job = PredictionInputs(
            workload,
            self.cluster,
            plan,
            self._framework,
            self.efficiency,
            Evidence(spread=self.jitter),
            cluster_corrections(self.cluster.name),
            input_seconds=self.input_seconds,
        )
        return schedule_job(job)

    @cached_property
    def _framework(self) -> FrameworkProfile:
        return find_framework(self.plan.framework or DEFAULT_FRAMEWORK)

    @staticmethod
    def _parameters(case: Timeline) -> int:
        return sum(part.profile.trainable_parameters for part in case.step.parts.layers)
