"""Prediction: time and memory of a step, its bottleneck and interval."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from paceline.hardware import Cluster
from paceline.predictor.kernels.layer_times import executed_flop_share
from paceline.predictor.memory.fit_probability import fits_in, room_bytes
from paceline.predictor.memory.memory_parts import Memory
from paceline.predictor.partition.pipeline_stages import stage_chunks
from paceline.predictor.plan.plan import Plan
from paceline.predictor.prediction_text import (
    as_html,
    as_text,
    bound_by,
    headline,
    losses_seconds,
)
from paceline.predictor.schedule.device_times import named_layers
from paceline.predictor.schedule.step_costs import LayerTime
from paceline.predictor.schedule.timeline import Timeline
from paceline.predictor.step_losses import StepLosses, step_losses
from paceline.predictor.uncertainty.intervals import ThroughputInterval
from paceline.render.result import Part, PublicResult
from paceline.step import Breakdown, Phase, Step, breakdown
from paceline.workload.precision import precision
from paceline.workload.workload import Workload

if TYPE_CHECKING:
    from paceline.predictor.nearest_fit import PlanChange
    from paceline.predictor.schedule.unequal_ranks import RankSchedule
    from paceline.predictor.training_run import RunConditions, TrainingRun
from collections.abc import Iterator
from typing import overload

_COMPUTING = (Phase.FORWARD, Phase.BACKWARD, Phase.UPDATE, Phase.OTHER)


@dataclass(frozen=True, repr=False)
class Prediction(PublicResult):
    """A predicted step with its memory. Times in seconds, sizes in bytes.

    ``timeline`` is the scheduled step with the values of all earlier stages, ``stage_memories`` the
    memory of a device of each pipeline stage, ``memory`` that of the fullest one.
    ``interval`` is the 90 % interval as factors on throughput. ``notes`` list assumptions and
    unknowns.
    """

    schema: ClassVar[str] = "prediction/2"
    workload: Workload
    cluster: Cluster
    plan: Plan
    framework: str
    timeline: Timeline
    step_seconds: float
    stage_memories: tuple[Memory, ...]
    memory: Memory
    training_flops: float
    interval: ThroughputInterval
    notes: tuple[str, ...] = ()

    @cached_property
    def step_losses(self) -> StepLosses:
        """Losses of the mean device that the schedule does not show."""
        return step_losses(self.timeline.step, self.timeline.corrections)

    @property
    def ideal_seconds(self) -> float:
        """A device's share of the arithmetic: no messages, bubbles, jitter or recomputation."""
        return self.step_losses.ideal

    @property
    def ideal_input_seconds(self) -> float:
        """Input in ``ideal_seconds``, if one device alone was measured to wait for it."""
        return self.timeline.step.job.evidence.input_seconds or 0.0

    @property
    def sharing_seconds(self) -> float:
        """Memory and cache contention within a machine."""
        return self.step_losses.sharing

    @property
    def waiting_seconds(self) -> float:
        """Jitter: the slowest worker against the mean."""
        return self.step_losses.waiting

    @cached_property
    def layers(self) -> tuple[LayerTime, ...]:
        """Times of each layer on the slowest device, for one micro-batch."""
        return tuple(named_layers(self.timeline.step.parts, self.timeline.times))

    @cached_property
    def layer_stages(self) -> tuple[int, ...]:
        """Pipeline stage of each layer."""
        stage_of = [0] * len(self.workload.graph.nodes)
        for stage in range(self.plan.pp):
            chunks = stage_chunks(self.plan, self.timeline.step.communication.chunks, stage)
            for position in (position for chunk in chunks for position in chunk.positions):
                stage_of[position] = stage
        return tuple(stage_of)

    @cached_property
    def executed_share(self) -> float:
        """Executed FLOP over FLOP of the model; below 1 with Winograd convolutions."""
        step = self.timeline.step
        return executed_flop_share(step.parts, step.job.efficiency)

    @property
    def devices(self) -> int:
        """Devices that the plan uses."""
        return self.plan.devices

    @cached_property
    def step(self) -> Step:
        """The scheduled tasks of the step."""
        return self.timeline.tasks()

    @property
    def step_interval_seconds(self) -> tuple[float, float]:
        """90 % interval of the seconds per step."""
        return self.step_seconds / self.interval.high, self.step_seconds / self.interval.low

    @property
    def relative_error(self) -> float:
        """Standard error of the prediction on a logarithmic scale."""
        return self.interval.relative_error

    @property
    def samples_per_step(self) -> int:
        """Samples per step of all replicas."""
        return self.workload.global_batch(self.plan.dp)

    @property
    def samples_per_second(self) -> float:
        """Throughput of all devices together."""
        return self.samples_per_step / self.step_seconds

    @property
    def samples_per_second_interval(self) -> tuple[float, float]:
        """90 % interval of the throughput."""
        shortest, longest = self.step_interval_seconds
        return self.samples_per_step / longest, self.samples_per_step / shortest

    @property
    def tokens_per_second(self) -> float | None:
        """Throughput in tokens, where samples are sequences."""
        if self.workload.sequence is None:
            return None
        return self.samples_per_second * self.workload.sequence

    @property
    def perfect_samples_per_second(self) -> float:
        """Null model: every device spends all its time on its share of the arithmetic."""
        return self.samples_per_step / self.ideal_seconds

    @property
    def efficiency(self) -> float:
        """Throughput over that of the null model."""
        return self.ideal_seconds / self.step_seconds

    @property
    def utilisation(self) -> float | None:
        """Model FLOP per second over the peak of all devices (MFU); None if one is unknown.

        Multiplications that Winograd convolutions save are not counted.
        """
        peak = self.cluster.device.peak_flops.get(precision(self.workload.precision).compute)
        if peak is None or self.training_flops == 0:
            return None
        executed = self.training_flops * self.executed_share
        return executed / self.step_seconds / (peak * self.devices)

    @cached_property
    def breakdown(self) -> Breakdown:
        """Seconds by phase of the last rank to finish."""
        return breakdown(self.step)

    @property
    def compute_seconds(self) -> float:
        """Computing time of the device, including recomputation."""
        exposed = self.breakdown.exposed
        return sum(seconds for phase, seconds in exposed.items() if phase in _COMPUTING)

    @property
    def exposed_communication_seconds(self) -> float:
        """Exposed communication."""
        return self.breakdown.exposed_communication_seconds

    @property
    def unhidden_samples_per_second(self) -> float:
        """Throughput without any overlap of communication: the lower bound of overlap."""
        hidden = self.breakdown.hidden_communication_seconds
        return self.samples_per_step / (self.step_seconds + hidden)

    @cached_property
    def losses(self) -> dict[str, float]:
        """Seconds lost per step, by cause."""
        return losses_seconds(self)

    @property
    def parts_seconds(self) -> dict[str, float]:
        """The step by cause: one device alone, then each loss."""
        return {"one device alone": self.ideal_seconds, **self.losses}

    def with_slowdowns(self, slowdowns: Sequence[float]) -> "RankSchedule":
        """The step with a slowdown per device: stragglers, mixed devices."""
        from paceline.predictor.schedule.unequal_ranks import with_slowdowns

        return with_slowdowns(self.step, self.plan, slowdowns)

    @property
    def device_memory_bytes(self) -> float | None:
        """Memory of one device, if known."""
        return self.cluster.device.memory_bytes

    @property
    def fits(self) -> bool | None:
        """Whether the job fits with probability above 1/2; None if the memory is unknown."""
        if self.device_memory_bytes is None:
            return None
        return bool(self.memory.total_bytes <= room_bytes(self.device_memory_bytes))

    @property
    def fits_probability(self) -> float | None:
        """Probability that the job fits in device memory; None if the memory is unknown."""
        return fits_in(float(self.memory.total_bytes), self.device_memory_bytes)

    @cached_property
    def nearest_fit(self) -> "PlanChange | None":
        """The smallest change of the plan with which the job fits; None if it fits already."""
        from paceline.predictor.nearest_fit import nearest_fit

        return nearest_fit(self.timeline.step.job) if self.fits is False else None

    @property
    def price_per_million_samples(self) -> float | None:
        """Price per million samples; None if the cluster has no price per device and hour."""
        rate = self.cluster.price_per_device_hour
        if rate is None:
            return None
        return rate * self.devices / 3600.0 * 1e6 / self.samples_per_second

    def with_price(self, price: float) -> "Prediction":
        """The same prediction with a price per device and hour."""
        return replace(self, cluster=replace(self.cluster, price_per_device_hour=price))

    def training(
        self,
        *,
        tokens: float | None = None,
        epochs: float | None = None,
        samples_per_epoch: float | None = None,
        conditions: "RunConditions | None" = None,
    ) -> "TrainingRun":
        """Time, device-hours, price and energy of a number of tokens or epochs, with intervals.

        Image classifiers with 1000 classes default to epochs of ImageNet-1k unless
        ``samples_per_epoch`` is given. ``conditions`` describe failures, checkpoints and prices;
        missing values are assumed and listed in the notes.
        """
        from paceline.predictor.training_run import RunConditions, TrainingRun, samples_of

        samples = samples_of(self, tokens, epochs, samples_per_epoch)
        return TrainingRun(self, samples, conditions or RunConditions())

    @property
    def bound_by(self) -> str:
        """The largest loss against the ideal, or the arithmetic."""
        return bound_by(self)

    def parts(self) -> list[Part]:
        """Throughput, memory, bottleneck and notes; first a warning if the plan does not fit."""
        return [as_text(self)]

    def summary(self) -> str:
        """Throughput and job."""
        return f"{self.samples_per_second:,.4g} samples/s: {headline(self)}"

    def to_dict(self) -> dict[str, Any]:
        """The fields of ``predict --json``."""
        from paceline.predictor.prediction_json import prediction_json

        return prediction_json(self)

    def rows(self) -> list[dict[str, Any]]:
        """One row."""
        return [self.to_dict()]

    def _repr_html_(self) -> str:
        return as_html(self)


@dataclass(frozen=True, repr=False)
class Predictions(PublicResult, Sequence[Prediction]):
    """One prediction for each combination of listed options; prints as a table."""

    schema: ClassVar[str] = "prediction/2"
    items: tuple[Prediction, ...]

    @overload
    def __getitem__(self, index: int) -> Prediction: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[Prediction, ...]: ...

    def __getitem__(self, index: int | slice) -> Prediction | tuple[Prediction, ...]:
        return self.items[index]

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[Prediction]:
        return iter(self.items)

    def parts(self) -> list[Part]:
        """One row per prediction, and the notes of all."""
        from paceline.predictor.prediction_tables import prediction_parts

        return list(prediction_parts(self.items))

    def summary(self) -> str:
        """The number of predictions."""
        return f"{len(self.items)} predictions"

    def to_dict(self) -> dict[str, Any]:
        """The predictions as in ``paceline predict --json``."""
        return {"predictions": [one.to_dict() for one in self.items]}
