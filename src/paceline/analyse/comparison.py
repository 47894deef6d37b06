"""A prediction beside what was measured."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from paceline.analyse.groups import LaunchGroup, grouped
from paceline.analyse.local_prediction import LocalPrediction
from paceline.store import Launch


@dataclass(frozen=True)
class Comparison:
    """One prediction and, where there is one, the measurement of the same configuration."""

    prediction: LocalPrediction
    measured: LaunchGroup | None = None

    @property
    def error(self) -> float | None:
        """Signed relative error of the predicted throughput; None where nothing was measured."""
        if self.measured is None:
            return None
        return self.prediction.throughput / self.measured.throughput.mean - 1

    @property
    def perfect_error(self) -> float | None:
        """The same for perfect scaling, the answer one has without a model."""
        if self.measured is None:
            return None
        return self.prediction.perfect_throughput / self.measured.throughput.mean - 1

    @property
    def covered(self) -> bool | None:
        """Whether the measured mean lies within the predicted interval."""
        if self.measured is None:
            return None
        low, high = self.prediction.throughput_interval
        return low <= self.measured.throughput.mean <= high


def compare_processes(
    predictions: Sequence[LocalPrediction], launches: Sequence[Launch]
) -> list[Comparison]:
    """Each prediction with the plain synchronised launches on as many processes of this node."""
    measured = {
        group.first.world_size: group
        for group in grouped(launches)
        if group.first.instrument == "none"
        and group.first.synchronised
        and group.first.world_size > 1
    }
    return [Comparison(one, measured.get(one.workers)) for one in predictions]


def comparisons_json(comparisons: Sequence[Comparison]) -> list[dict[str, Any]]:
    """Comparisons as JSON values, units in the names."""
    return [
        {
            "label": one.prediction.label,
            "workers": one.prediction.workers,
            "predicted_samples_per_second": one.prediction.throughput,
            "low_samples_per_second": one.prediction.throughput_interval[0],
            "high_samples_per_second": one.prediction.throughput_interval[1],
            "measured_samples_per_second": one.measured and one.measured.throughput.mean,
            "relative_error": one.error,
            "perfect_scaling_samples_per_second": one.prediction.perfect_throughput,
            "step_seconds": one.prediction.step_seconds,
            "sharing_seconds": one.prediction.sharing_seconds,
            "waiting_seconds": one.prediction.waiting_seconds,
            "exposed_communication_seconds": one.prediction.exposed_seconds,
        }
        for one in comparisons
    ]
