"""A prediction and the measurement of the same configuration."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from paceline.analysis.configurations import JobKey, LaunchGroup, grouped, job_key
from paceline.predictor.prediction import Prediction
from paceline.store import Launch


@dataclass(frozen=True)
class Comparison:
    """One prediction and the measurement of the same configuration, if there is one."""

    prediction: Prediction
    measured: LaunchGroup | None = None

    @property
    def label(self) -> str:
        cluster = self.prediction.cluster
        if cluster.nodes == 1:
            return f"{self.prediction.devices} processes"
        network = "" if cluster.inter is None else f", {cluster.inter.name}"
        return f"{cluster.nodes} nodes{network}"

    @property
    def error(self) -> float | None:
        """Signed relative error of the predicted throughput; None where nothing was measured."""
        if self.measured is None:
            return None
        return self.prediction.samples_per_second / self.measured.throughput.mean - 1

    @property
    def perfect_error(self) -> float | None:
        """The same error for perfect scaling, the null model."""
        if self.measured is None:
            return None
        return self.prediction.perfect_samples_per_second / self.measured.throughput.mean - 1

    @property
    def covered(self) -> bool | None:
        """Whether the measured mean is inside the predicted interval."""
        if self.measured is None:
            return None
        low, high = self.prediction.samples_per_second_interval
        return low <= self.measured.throughput.mean <= high


def compare_processes(
    predictions: Sequence[Prediction], launches: Sequence[Launch], job: JobKey
) -> list[Comparison]:
    """Each prediction with the plain synchronised launches of the job on as many processes.

    Launches with a given bucket size count only if there are no others.
    """
    measured: dict[int, LaunchGroup] = {}
    for group in grouped(launches):
        first = group.first
        is_plain = first.instrument == "none" and first.synchronised and first.world_size > 1
        usual = first.job.get("bucket_bytes") is None
        if is_plain and job_key(first) == job and (usual or first.world_size not in measured):
            measured[first.world_size] = group
    return [Comparison(one, measured.get(one.devices)) for one in predictions]


def comparisons_json(comparisons: Sequence[Comparison]) -> list[dict[str, Any]]:
    """Comparisons as JSON values, units in the names."""
    return [
        {
            "label": one.label,
            "workers": one.prediction.devices,
            "predicted_samples_per_second": one.prediction.samples_per_second,
            "low_samples_per_second": one.prediction.samples_per_second_interval[0],
            "high_samples_per_second": one.prediction.samples_per_second_interval[1],
            "measured_samples_per_second": one.measured and one.measured.throughput.mean,
            "relative_error": one.error,
            "perfect_scaling_samples_per_second": one.prediction.perfect_samples_per_second,
            "step_seconds": one.prediction.step_seconds,
            "sharing_seconds": one.prediction.sharing_seconds,
            "waiting_seconds": one.prediction.waiting_seconds,
            "exposed_communication_seconds": one.prediction.exposed_communication_seconds,
        }
        for one in comparisons
    ]
