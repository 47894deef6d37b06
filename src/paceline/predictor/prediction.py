"""Prediction: what a step under a plan takes, what bounds it, and whether it fits."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from paceline.hardware import Cluster
from paceline.plan.memory import Memory
from paceline.plan.plan import Plan
from paceline.predictor.memory_fit import room_bytes
from paceline.predictor.render import as_html, as_text, bound_by, losses_seconds
from paceline.predictor.uncertainty import ThroughputInterval
from paceline.step import Breakdown, Phase, Step, breakdown
from paceline.workload.precision import precision
from paceline.workload.workload import Workload

if TYPE_CHECKING:
    from paceline.predictor.ranks import RankSchedule
    from paceline.predictor.training_run import RunConditions, TrainingRun

_COMPUTING = (Phase.FORWARD, Phase.BACKWARD, Phase.UPDATE, Phase.OTHER)


@dataclass(frozen=True)
class Prediction:
    """A predicted step with its memory. Times in seconds, sizes in bytes.

    ``ideal_seconds`` is what a device needs for its share of the arithmetic alone: no messages,
    bubbles, waiting or recomputation, but ``ideal_input_seconds`` of input where one device
    alone was seen to wait for so much. ``sharing_seconds`` is how much longer a device takes
    beside the others of its machine, ``waiting_seconds`` how much longer the slowest of all
    workers computes than the mean one, ``division_seconds`` how much longer because tokens and
    experts are shared out unequally or in parts, ``recomputing_seconds`` what the mean device
    computes again instead of keeping it. ``interval`` is 90 %, as factors on the
    throughput. ``notes`` say what the numbers rest on and what is not known.
    """

    workload: Workload
    cluster: Cluster
    plan: Plan
    framework: str
    step_seconds: float
    schedule: Callable[[], Step]
    memory: Memory
    ideal_seconds: float
    ideal_input_seconds: float
    sharing_seconds: float
    waiting_seconds: float
    training_flops: float
    interval: ThroughputInterval
    notes: tuple[str, ...] = ()
    division_seconds: float = 0.0
    recomputing_seconds: float = 0.0

    @property
    def devices(self) -> int:
        """Devices that the plan uses."""
        return self.plan.devices

    @cached_property
    def step(self) -> Step:
        """The tasks of the step, placed in time."""
        return self.schedule()

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
        """Samples that all replicas train on per step."""
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
        """Model FLOP per second over the peak of all devices (MFU); None where one is unknown."""
        peak = self.cluster.device.peak_flops.get(precision(self.workload.precision).compute)
        if peak is None or self.training_flops == 0:
            return None
        return self.training_flops / self.step_seconds / (peak * self.devices)

    @cached_property
    def breakdown(self) -> Breakdown:
        """Seconds by phase of the rank that ends last."""
        return breakdown(self.step)

    @property
    def compute_seconds(self) -> float:
        """Time that the device computes, what it computes again included."""
        exposed = self.breakdown.exposed
        return sum(seconds for phase, seconds in exposed.items() if phase in _COMPUTING)

    @property
    def exposed_communication_seconds(self) -> float:
        """Communication that nothing hides."""
        return self.breakdown.exposed_communication_seconds

    @property
    def unhidden_samples_per_second(self) -> float:
        """Throughput if nothing of the communication were hidden: what overlap cannot go below."""
        hidden = self.breakdown.hidden_communication_seconds
        return self.samples_per_step / (self.step_seconds + hidden)

    @cached_property
    def losses(self) -> dict[str, float]:
        """Seconds of the step by what they are lost to."""
        return losses_seconds(self)

    @property
    def parts_seconds(self) -> dict[str, float]:
        """The step by cause: one device alone, then what each thing adds to it."""
        return {"one device alone": self.ideal_seconds, **self.losses}

    def with_slowdowns(self, slowdowns: Sequence[float]) -> "RankSchedule":
        """The step if each device computed so many times as long: stragglers, mixed devices."""
        from paceline.predictor.ranks import with_slowdowns

        return with_slowdowns(self.step, self.plan, slowdowns)

    @property
    def device_memory_bytes(self) -> float | None:
        """Memory of one device, if known."""
        return self.cluster.device.memory_bytes

    @property
    def fits(self) -> bool | None:
        """Whether the fullest device more likely than not has room; None if nobody knows it."""
        if self.device_memory_bytes is None:
            return None
        return bool(self.memory.total_bytes <= room_bytes(self.device_memory_bytes))

    @property
    def price_per_million_samples(self) -> float | None:
        """Price of a million samples where the cluster has a price per device and hour."""
        rate = self.cluster.price_per_device_hour
        if rate is None:
            return None
        return rate * self.devices / 3600.0 * 1e6 / self.samples_per_second

    def with_price(self, price: float) -> "Prediction":
        """The same with so much to pay for a device and hour."""
        return replace(self, cluster=replace(self.cluster, price_per_device_hour=price))

    def training(
        self,
        *,
        tokens: float | None = None,
        epochs: float | None = None,
        samples_per_epoch: float | None = None,
        conditions: "RunConditions | None" = None,
    ) -> "TrainingRun":
        """Days, device-hours, price and energy of so many tokens or epochs, with intervals.

        Networks that tell images into a thousand classes have epochs of ImageNet-1k unless
        ``samples_per_epoch`` says another size. ``conditions`` are what is known of failures,
        checkpoints and prices; the rest is assumed, and said.
        """
        from paceline.predictor.training_run import RunConditions, TrainingRun, samples_of

        samples = samples_of(self, tokens, epochs, samples_per_epoch)
        return TrainingRun(self, samples, conditions or RunConditions())

    @property
    def bound_by(self) -> str:
        """What takes the largest part of the time beyond the ideal, or the arithmetic."""
        return bound_by(self)

    def __str__(self) -> str:
        return as_text(self)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return as_html(self)
