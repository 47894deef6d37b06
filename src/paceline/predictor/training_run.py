"""A whole training run: duration, cost and energy, with intervals."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from paceline.constants import number
from paceline.errors import InputError
from paceline.predictor.memory.memory_parts import optimizer_bytes_per_parameter
from paceline.predictor.uncertainty.intervals import NORMAL_QUANTILE
from paceline.units import format_seconds
from paceline.workload.adapters import adapter_rank
from paceline.workload.precision import precision

if TYPE_CHECKING:
    from paceline.predictor.prediction import Prediction

HOUR = 3600.0
DAY = 24 * HOUR
IMAGENET_SAMPLES = 1_281_167
"""Training images of ImageNet-1k (ILSVRC 2012)."""
_IMAGENET_CLASSES = 1000
_LEAST_GOODPUT = 0.01
"""Smallest goodput for which a run is predicted."""
_LARGEST_EXPONENT = 500.0
_KWH = 3.6e6
"""Joules."""
_BOUNDS = ("value", "low", "high")


@dataclass(frozen=True)
class Interruptions:
    """Failures and checkpoints of a job, in seconds (Young 1974, Daly 2006).

    ``between_failures`` is the mean time between failures of the whole job, ``checkpoint`` the
    time that training pauses for one, ``restart`` the time from a failure to the continuation
    from the last checkpoint.
    """

    between_failures: float
    checkpoint: float
    restart: float

    def __post_init__(self) -> None:
        for name in ("between_failures", "checkpoint", "restart"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value >= 0) or (name != "restart" and value == 0):
                field = name.replace("_", " ")
                raise InputError(f"{field} must be positive (got {value:g} s)", "give a time")

    @property
    def best_interval(self) -> float:
        """The optimal time between two checkpoints (Daly 2006, after Young 1974)."""
        ratio = self.checkpoint / (2.0 * self.between_failures)
        if ratio >= 1.0:
            return self.between_failures
        root = math.sqrt(2.0 * self.checkpoint * self.between_failures)
        return root * (1.0 + math.sqrt(ratio) / 3.0 + ratio / 9.0) - self.checkpoint

    def goodput(self, interval: float | None = None) -> float:
        """Share of productive time, with a checkpoint after each ``interval`` [optimal].

        Failures are a Poisson process and may occur during checkpoints and restarts (Daly 2006).
        """
        between = self.between_failures
        trained = self.best_interval if interval is None else interval
        lost = self.restart / between
        piece = (trained + self.checkpoint) / between
        if max(lost, piece) > _LARGEST_EXPONENT:
            return 0.0
        return trained / (between * math.exp(lost) * math.expm1(piece))


@dataclass(frozen=True)
class RangedValue:
    """A number with its 90 % interval."""

    value: float
    low: float
    high: float

    def times(self, factor: float) -> "RangedValue":
        """The value and its interval multiplied by ``factor``."""
        return RangedValue(factor * self.value, factor * self.low, factor * self.high)


@dataclass(frozen=True)
class RunConditions:
    """Operating conditions of a run; None is replaced by an assumption that the notes list.

    Seconds: ``device_time_between_failures`` of one device, ``checkpoint`` (training pauses),
    ``restart``, ``checkpoint_every`` (default: optimal). ``price`` is per device and hour.
    ``without_failures`` ignores failures and checkpoints. ``nic_price`` is the purchase price of a
    NIC with its switch port, ``electricity`` the price of a kWh.
    """

    device_time_between_failures: float | None = None
    checkpoint: float | None = None
    restart: float | None = None
    checkpoint_every: float | None = None
    price: float | None = None
    without_failures: bool = False
    nic_price: float | None = None
    electricity: float | None = None


@dataclass(frozen=True)
class TrainingRun:
    """A training run of ``samples`` samples, including failures and checkpoints."""

    prediction: "Prediction"
    samples: float
    conditions: RunConditions = RunConditions()

    def __post_init__(self) -> None:
        if not (math.isfinite(self.samples) and self.samples > 0):
            raise InputError(
                f"samples must be positive (got {self.samples:g})", "give a number above zero"
            )
        every = self.conditions.checkpoint_every
        if every is not None and not (math.isfinite(every) and every > 0):
            raise InputError(f"checkpoint_every must be positive (got {every:g} s)", "give a time")
        if self.goodput.value < _LEAST_GOODPUT:
            raise InputError(
                "failures and restarts leave less than 1 % of the time for training",
                "give a longer --mtbf, or a shorter --restart-time or --checkpoint-time",
            )

    @property
    def steps(self) -> int:
        """Steps; the last one may be partial."""
        return math.ceil(self.samples / self.prediction.samples_per_step)

    @property
    def tokens(self) -> float | None:
        """Tokens, if samples are sequences."""
        sequence = self.prediction.workload.sequence
        return None if sequence is None else self.samples * sequence

    @cached_property
    def checkpoint_bytes(self) -> float:
        """Weights and optimizer state, once for all replicas; of adapters only those."""
        workload = self.prediction.workload
        numbers = precision(workload.precision)
        state = optimizer_bytes_per_parameter(
            workload.optimizer, numbers, self.prediction.plan.optimizer_state
        )
        held, trained = workload.profile.parameters, workload.profile.trainable_parameters
        kept = trained if adapter_rank(workload.graph) is not None else held
        return float(kept * numbers.weight_bytes + trained * state)

    @cached_property
    def interruptions(self) -> Interruptions:
        """Failures and checkpoints, given or assumed."""
        given, nodes = self.conditions, self.prediction.cluster.nodes
        alone = given.device_time_between_failures
        between = number("operation.failures.device_time") if alone is None else alone
        rate = nodes * number("operation.checkpoint.bandwidth_of_a_node")
        written = number("operation.checkpoint.least") + self.checkpoint_bytes / rate
        return Interruptions(
            between / self.prediction.devices,
            written if given.checkpoint is None else given.checkpoint,
            number("operation.failures.restart") if given.restart is None else given.restart,
        )

    @cached_property
    def goodput(self) -> RangedValue:
        """Share of productive time."""
        if self.conditions.without_failures:
            return RangedValue(1.0, 1.0, 1.0)
        assumed = self.conditions.device_time_between_failures is None
        spread = number("operation.failures.spread") if assumed else 0.0
        every = self.conditions.checkpoint_every or self.interruptions.best_interval
        found = [
            Interruptions(
                self.interruptions.between_failures * math.exp(shift * spread),
                self.interruptions.checkpoint,
                self.interruptions.restart,
            ).goodput(every)
            for shift in (0.0, -NORMAL_QUANTILE, NORMAL_QUANTILE)
        ]
        return RangedValue(*found)

    @property
    def checkpoint_every_seconds(self) -> float | None:
        """Time between two checkpoints, given or optimal; None without failures."""
        if self.conditions.without_failures:
            return None
        return self.conditions.checkpoint_every or self.interruptions.best_interval

    @cached_property
    def seconds(self) -> RangedValue:
        """From the first step to the last; steps and goodput are independent."""
        found = self.prediction
        value = self.steps * found.step_seconds / self.goodput.value
        shortest, longest = found.step_interval_seconds
        better = math.log(self.goodput.high / self.goodput.value)
        worse = math.log(self.goodput.value / max(self.goodput.low, 1e-9))
        return RangedValue(
            value,
            value / math.exp(math.hypot(math.log(found.step_seconds / shortest), better)),
            value * math.exp(math.hypot(math.log(longest / found.step_seconds), worse)),
        )

    @property
    def failures(self) -> float:
        """Expected number of failures."""
        if self.conditions.without_failures:
            return 0.0
        return self.seconds.value / self.interruptions.between_failures

    @property
    def device_hours(self) -> RangedValue:
        """Hours of all devices together."""
        return self.seconds.times(self.prediction.devices / HOUR)

    @property
    def price(self) -> RangedValue | None:
        """Cost in the currency of the prices; None without any price.

        Devices per hour, the share of NICs and switch ports of their lifetime, electricity.
        """
        given, cluster = self.conditions, self.prediction.cluster
        rate = cluster.price_per_device_hour if given.price is None else given.price
        parts = [] if rate is None else [self.device_hours.times(rate)]
        if given.nic_price is not None:
            nics = cluster.nodes * (cluster.nics_per_node or 1)
            share = nics * given.nic_price / number("operation.network.lifetime")
            parts.append(self.seconds.times(share))
        if given.electricity is not None and self.energy_joules is not None:
            parts.append(self.energy_joules.times(given.electricity / _KWH))
        if not parts:
            return None
        return RangedValue(*(sum(getattr(own, name) for own in parts) for name in _BOUNDS))

    @property
    def price_per_million_tokens(self) -> RangedValue | None:
        """Cost of a million tokens; None without tokens or a price."""
        if self.price is None or self.tokens is None:
            return None
        return self.price.times(1e6 / self.tokens)

    @property
    def energy_joules(self) -> RangedValue | None:
        """Energy of devices at rated power plus hosts and cooling; None if the power is unknown."""
        power = self.prediction.cluster.device.power_watts
        if power is None:
            return None
        watts = power * number("operation.power.overhead")
        used, spread = self.device_hours.times(watts * HOUR), number("operation.power.spread")
        wide = NORMAL_QUANTILE * spread
        return RangedValue(
            used.value,
            used.value / math.exp(math.hypot(math.log(used.value / used.low), wide)),
            used.value * math.exp(math.hypot(math.log(used.high / used.value), wide)),
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """Assumptions of the run."""
        given, found = self.conditions, []
        if given.without_failures:
            found.append("ignores failures and checkpoints")
        else:
            stops = self.interruptions
            hours = stops.between_failures * self.prediction.devices / HOUR
            assumed = (
                (
                    given.device_time_between_failures,
                    f"one failure in {hours:,.0f} device-hours (--mtbf)",
                ),
                (
                    given.checkpoint,
                    f"{format_seconds(stops.checkpoint)} for a checkpoint (--checkpoint-time)",
                ),
                (
                    given.restart,
                    f"{format_seconds(stops.restart)} for a restart (--restart-time)",
                ),
            )
            missing = [text for stated, text in assumed if stated is None]
            if missing:
                found.append(f"assumes {', '.join(missing)}")
        if given.nic_price is not None:
            years = number("operation.network.lifetime") / (365 * DAY)
            found.append(f"assumes that NICs and switch ports are used for {years:.3g} years")
        if self.price is None:
            found.append("no price: give one per device and hour with --price")
        return tuple(found)


def samples_of(
    prediction: "Prediction",
    tokens: float | None,
    epochs: float | None,
    samples_per_epoch: float | None,
) -> float:
    """Number of samples of ``tokens``, or of ``epochs`` of ``samples_per_epoch``."""
    if (tokens is None) == (epochs is None):
        raise InputError(
            "the amount of training is missing or ambiguous", "give either tokens or epochs"
        )
    if tokens is not None:
        sequence = prediction.workload.sequence or _captured_tokens(prediction)
        if sequence is None:
            raise InputError(
                f"{prediction.workload.graph.name} does not train on tokens",
                "give --epochs and --samples-per-epoch",
            )
        return tokens / sequence
    assert epochs is not None
    if samples_per_epoch is None:
        if not _is_imagenet(prediction):
            raise InputError(
                "the number of samples per epoch is unknown",
                "give --samples-per-epoch, e.g. 1.28M",
            )
        samples_per_epoch = float(IMAGENET_SAMPLES)
    return epochs * samples_per_epoch


def _captured_tokens(prediction: "Prediction") -> int | None:
    """Tokens per sample of a captured model: the length of its only inputs, integers."""
    specs = prediction.workload.graph.inputs.values()
    lengths = [spec.shape[0] for spec in specs if spec.dtype == "integer" and len(spec.shape) == 1]
    others = any(spec.dtype == "float" and spec.shape for spec in specs)
    found = max((size for size in lengths if isinstance(size, int)), default=None)
    return None if others else found


def _is_imagenet(prediction: "Prediction") -> bool:
    """Whether a network classifies images into 1000 classes."""
    specs = prediction.workload.graph.inputs.values()
    return any(spec.limit == _IMAGENET_CLASSES for spec in specs) and any(
        spec.dtype == "float" and len(spec.shape) == 3 for spec in specs
    )
