"""The ratio of two predicted throughputs, with its own interval.

Predictions of one model by one program on one device share most of their error, so their ratio is
known better than either. The interval is fitted to pairs of published rows
(`script/fit-constants --ratios`).
"""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

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


def throughput_ratio(own: "Prediction", other: "Prediction") -> Ratio:
    """Samples per second of ``own`` over those of ``other``."""
    value = own.samples_per_second / other.samples_per_second
    spread = math.exp(NORMAL_QUANTILE * ratio_error(own, other))
    return Ratio(value, value / spread, value * spread)


def ratio_error(own: "Prediction", other: "Prediction") -> float:
    """Standard error of the logarithm of the ratio of two throughputs.

    Predictions of different models, programs or devices have independent errors.
    """
    if own is other or _job(own) == _job(other):
        return 0.0
    if _shared(own) != _shared(other):
        return math.hypot(own.relative_error, other.relative_error)
    shares = loss_shares(own), loss_shares(other)
    per_device = [one.samples_per_step / one.devices for one in (own, other)]
    return ratio_deviation(
        apart(*shares),
        abs(math.log(per_device[0] / per_device[1])),
        other_precision=own.workload.precision != other.workload.precision,
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


def apart(own: dict[str, float], other: dict[str, float]) -> float:
    """Euclidean distance of two sets of shares."""
    return math.hypot(*(own.get(name, 0.0) - other.get(name, 0.0) for name in {*own, *other}))


def uncertain_seconds(prediction: "Prediction") -> dict[str, float]:
    """Losses with independent errors: all but recomputation, plus hidden communication."""
    losses = dict(prediction.losses)
    # Bubble and idle time are the same loss with and without a pipeline.
    waiting = losses.pop("pipeline bubble", 0.0) + losses.pop("idle", 0.0)
    losses.pop(RECOMPUTATION, None)
    return {
        **losses,
        "waiting": waiting,
        "products": prediction.ideal_seconds,
        "hidden": prediction.breakdown.hidden_communication_seconds,
    }


def _shared(prediction: "Prediction") -> tuple[str, str, str]:
    """Names of the properties whose errors cancel in a ratio."""
    workload, device = prediction.workload, prediction.cluster.device
    return workload.graph.name, prediction.framework, device.name


def _job(prediction: "Prediction") -> tuple[object, ...]:
    return prediction.workload, prediction.cluster, prediction.plan
