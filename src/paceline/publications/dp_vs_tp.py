"""Measured and predicted data and tensor parallelism of one network."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from paceline.analysis.configurations import LaunchGroup, describe_lab, grouped
from paceline.calibration.local_prediction import predict_from_profile
from paceline.calibration.prediction_error import Comparison
from paceline.hardware.link import Link
from paceline.hardware.machine_profile import MachineProfile
from paceline.predictor.plan.plan import Plan
from paceline.predictor.prediction import Prediction
from paceline.store import Launch
from paceline.units import parse_bandwidth
from paceline.workload.graph import Graph
from paceline.workload.workload import Workload

DATA, TENSOR = "torch-ddp", "torch-tp"
_LINK = "link="


@dataclass(frozen=True)
class DpVsTp:
    """One global ``batch`` (samples) under both plans; ``where`` names the links of a lab."""

    batch: int
    data: LaunchGroup
    tensor: LaunchGroup
    where: str = ""
    predicted_data: Prediction | None = None
    predicted_tensor: Prediction | None = None

    @property
    def compared(self) -> list[Comparison]:
        """Each predicted plan with its measurement."""
        pairs = ((self.predicted_data, self.data), (self.predicted_tensor, self.tensor))
        return [Comparison(found, own) for found, own in pairs if found is not None]

    @property
    def measured_ratio(self) -> float:
        """Measured step time of tensor parallelism over that of data parallelism."""
        return self.tensor.step.mean / self.data.step.mean

    @property
    def predicted_ratio(self) -> float | None:
        """The predicted ratio; None without a profile of the machine."""
        if self.predicted_data is None or self.predicted_tensor is None:
            return None
        return self.predicted_tensor.step_seconds / self.predicted_data.step_seconds


def compare_dp_tp(launches: Sequence[Launch], profile: MachineProfile | None) -> tuple[DpVsTp, ...]:
    """Every batch that ran under both plans, the smallest first."""
    by_batch: dict[tuple[str, int], dict[str, LaunchGroup]] = {}
    for group in grouped(launches):
        first = group.first
        if first.world_size > 1 and first.instrument == "none":
            key = (describe_lab(first), round(first.samples_per_step))
            by_batch.setdefault(key, {})[first.framework] = group
    return tuple(
        _compared(batch, where, found[DATA], found[TENSOR], profile)
        for (where, batch), found in sorted(by_batch.items())
        if {DATA, TENSOR} <= found.keys()
    )


def crossover_batch(batches: Sequence[int], ratios: Sequence[float]) -> float | None:
    """The batch from which data parallelism is faster, between two measured batches.

    Interpolated in log(batch) and log(ratio); None without a crossover.
    """
    points = [(math.log(x), math.log(y)) for x, y in zip(batches, ratios, strict=True)]
    for (x, y), (next_x, next_y) in pairwise(points):
        if y < 0 <= next_y:
            return math.exp(x + (next_x - x) * -y / (next_y - y))
    return None


def _compared(
    batch: int,
    where: str,
    data: LaunchGroup,
    tensor: LaunchGroup,
    profile: MachineProfile | None,
) -> DpVsTp:
    if profile is None:
        return DpVsTp(batch, data, tensor, where)
    count = data.first.world_size
    return DpVsTp(
        batch,
        data,
        tensor,
        where,
        _predicted(data.first, profile, batch // count, Plan(dp=count, framework=DATA)),
        _predicted(tensor.first, profile, batch, Plan(tp=count, framework=TENSOR)),
    )


def _predicted(launch: Launch, profile: MachineProfile, batch: int, plan: Plan) -> Prediction:
    workload = Workload(Graph.from_json(launch.job["graph"]), batch, launch.job.get("sequence"))
    topology = (launch.nodes, launch.world_size // launch.nodes)
    return predict_from_profile(workload, profile, topology, _link_of(launch), plan)


def _link_of(launch: Launch) -> Link | None:
    """The links of a lab; None for processes of this machine."""
    for option in launch.job.get("launcher_options", ()):
        if option.startswith(_LINK):
            rate = parse_bandwidth(option.removeprefix(_LINK))
            return Link("lab link", "inter", rate, transport="tcp")
    return None
