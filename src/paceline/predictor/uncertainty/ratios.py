"""The ratio of two predicted throughputs, with its own interval.

Predictions of one model by one program on one device share most of their error, so their ratio is
known better than either. The interval is fitted to pairs of published rows
(`script/fit-constants --ratios`).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from paceline.constants import number
from paceline.predictor.prediction_text import RECOMPUTATION
from paceline.predictor.uncertainty.intervals import NORMAL_QUANTILE

if TYPE_CHECKING:
    from paceline.predictor.prediction import Prediction


@dataclass(frozen=True, slots=True)
class Ratio:
    """A ratio of two throughputs with its 90 % interval."""

    value: float
    low: float
    high: float

    @property
    def distinguishable(self) -> bool:
        """Whether the interval excludes 1."""
        return not self.low <= 1.0 <= self.high

    def of_steps(self, value: float) -> "Ratio":
        """The same relative interval around a ratio of step times."""
        return Ratio(value, value * self.low / self.value, value * self.high / self.value)


@dataclass(frozen=True)
class PredictedRate:
    """What the error of a ratio depends on, of one prediction.

    ``shared`` names model, program and device, whose errors cancel; ``job`` identifies the job.
    """

    job: object
    shared: tuple[str, str, str]
    precision: str
    samples_per_second: float
    samples_per_device: float
    relative_error: float
    shares: Mapping[str, float]


def rate_of(prediction: "Prediction") -> PredictedRate:
    """The rate of a prediction."""
    workload, device = prediction.workload, prediction.cluster.device
    return PredictedRate(
        (workload, prediction.cluster, prediction.plan),
        (workload.graph.name, prediction.framework, device.name),
        workload.precision,
        prediction.samples_per_second,
        prediction.samples_per_step / prediction.devices,
        prediction.relative_error,
        loss_shares(prediction),
    )


def rate_of_json(written: Mapping[str, Any]) -> PredictedRate:
    """The rate of a prediction in the output of ``predict --json``."""
    low, high = written["samples_per_second_interval_90"]
    hidden = written["hidden_communication_seconds"]
    seconds = _uncertain(written["loss_seconds"], written["ideal_seconds"], hidden)
    return PredictedRate(
        dict(written),
        (written["model"], written["framework"], written["device"]),
        written["precision"],
        written["samples_per_second"],
        written["global_batch"] / written["devices"],
        math.log(high / low) / (2 * NORMAL_QUANTILE),
        {name: value / written["step_seconds"] for name, value in seconds.items()},
    )


def throughput_ratio(own: "Prediction", other: "Prediction") -> Ratio:
    """Samples per second of ``own`` over those of ``other``."""
    return ratio_of_rates(rate_of(own), rate_of(other))


def ratio_of_rates(own: PredictedRate, other: PredictedRate) -> Ratio:
    """The ratio of two rates with its interval."""
    value = own.samples_per_second / other.samples_per_second
    spread = math.exp(NORMAL_QUANTILE * ratio_error(own, other))
    return Ratio(value, value / spread, value * spread)


def ratio_error(own: PredictedRate, other: PredictedRate) -> float:
    """Standard error of the logarithm of the ratio of two throughputs.

    Predictions of different models, programs or devices have independent errors.
    """
    if own is other or own.job == other.job:
        return 0.0
    if own.shared != other.shared:
        return math.hypot(own.relative_error, other.relative_error)
    return ratio_deviation(
        apart(own.shares, other.shares),
        abs(math.log(own.samples_per_device / other.samples_per_device)),
        other_precision=own.precision != other.precision,
    )


def ratio_deviation(lost: float, batch: float, *, other_precision: bool) -> float:
    """Standard error of a ratio.

    ``lost`` is the distance of the shares of the losses, ``batch`` that of the logarithms of the
    samples per device.
    """
    return math.hypot(
        number("spread.ratio.base"),
        number("spread.ratio.losses") * lost,
        number("spread.ratio.batch") * batch,
        number("spread.ratio.precision") if other_precision else 0.0,
    )


def loss_shares(prediction: "Prediction") -> dict[str, float]:
    """Shares of a step with independent errors."""
    return {
        name: value / prediction.step_seconds
        for name, value in uncertain_seconds(prediction).items()
    }


def apart(own: Mapping[str, float], other: Mapping[str, float]) -> float:
    """Euclidean distance of two sets of shares."""
    return math.hypot(*(own.get(name, 0.0) - other.get(name, 0.0) for name in {*own, *other}))


def uncertain_seconds(prediction: "Prediction") -> dict[str, float]:
    """Losses with independent errors: all but recomputation, plus hidden communication."""
    hidden = prediction.breakdown.hidden_communication_seconds
    return _uncertain(prediction.losses, prediction.ideal_seconds, hidden)


def _uncertain(losses: Mapping[str, float], ideal: float, hidden: float) -> dict[str, float]:
    # Bubble and idle time are the same loss with and without a pipeline.
    waiting = losses.get("pipeline bubble", 0.0) + losses.get("idle", 0.0)
    apart_from = ("pipeline bubble", "idle", RECOMPUTATION)
    others = {name: value for name, value in losses.items() if name not in apart_from}
    return {**others, "waiting": waiting, "products": ideal, "hidden": hidden}
