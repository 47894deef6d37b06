"""Data and tensor parallelism of one network as they were trained, beside their predictions."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from paceline.analyse.comparison import Comparison
from paceline.analyse.groups import LaunchGroup, grouped, lab_words
from paceline.analyse.this_machine import predict_from_profile
from paceline.hardware.link import Link
from paceline.hardware.profile import MachineProfile
from paceline.plan.plan import Plan
from paceline.predictor.prediction import Prediction
from paceline.store import Launch
from paceline.units import parse_bandwidth
from paceline.workload.graph import Graph
from paceline.workload.workload import Workload

DATA, TENSOR = "torch-ddp", "torch-tp"
_LINK = "link="


@dataclass(frozen=True)
class ParallelWays:
    """One global ``batch`` (samples) in both ways; ``where`` names the links of a lab."""

    batch: int
    data: LaunchGroup
    tensor: LaunchGroup
    where: str = ""
    predicted_data: Prediction | None = None
    predicted_tensor: Prediction | None = None

    @property
    def compared(self) -> list[Comparison]:
        """Each way that was predicted, with its measurement."""
        pairs = ((self.predicted_data, self.data), (self.predicted_tensor, self.tensor))
        return [Comparison(found, own) for found, own in pairs if found is not None]

    @property
    def measured_ratio(self) -> float:
        """Seconds of a step in tensor parallelism over those in data parallelism."""
        return self.tensor.step.mean / self.data.step.mean

    @property
    def predicted_ratio(self) -> float | None:
        """The same as predicted; None without a profile of the machine."""
        if self.predicted_data is None or self.predicted_tensor is None:
            return None
        return self.predicted_tensor.step_seconds / self.predicted_data.step_seconds


def parallel_ways(
    launches: Sequence[Launch], profile: MachineProfile | None
) -> tuple[ParallelWays, ...]:
    """Every batch that was trained in both ways, the smallest first."""
    by_batch: dict[tuple[str, int], dict[str, LaunchGroup]] = {}
    for group in grouped(launches):
        first = group.first
        if first.world_size > 1 and first.instrument == "none":
            key = (lab_words(first), round(first.samples_per_step))
            by_batch.setdefault(key, {})[first.framework] = group
    return tuple(
        _ways(batch, where, found[DATA], found[TENSOR], profile)
        for (where, batch), found in sorted(by_batch.items())
        if {DATA, TENSOR} <= found.keys()
    )


def crossover_batch(batches: Sequence[int], ratios: Sequence[float]) -> float | None:
    """The batch from which data parallelism is faster, between two that were tried.

    Interpolated on logarithms of batch and ratio; None where the order never changes so.
    """
    points = [(math.log(x), math.log(y)) for x, y in zip(batches, ratios, strict=True)]
    for (x, y), (next_x, next_y) in pairwise(points):
        if y < 0 <= next_y:
            return math.exp(x + (next_x - x) * -y / (next_y - y))
    return None


def _ways(
    batch: int,
    where: str,
    data: LaunchGroup,
    tensor: LaunchGroup,
    profile: MachineProfile | None,
) -> ParallelWays:
    if profile is None:
        return ParallelWays(batch, data, tensor, where)
    count = data.first.world_size
    return ParallelWays(
        batch,
        data,
        tensor,
        where,
        _predicted(data.first, profile, batch // count, Plan(dp=count, framework=DATA)),
        _predicted(tensor.first, profile, batch, Plan(tp=count, framework=TENSOR)),
    )


def _predicted(launch: Launch, profile: MachineProfile, batch: int, plan: Plan) -> Prediction:
    workload = Workload(Graph.from_json(launch.job["graph"]), batch, launch.job.get("sequence"))
    place = (launch.nodes, launch.world_size // launch.nodes)
    return predict_from_profile(workload, profile, place, _link_of(launch), plan)


def _link_of(launch: Launch) -> Link | None:
    """What the hosts of a lab are joined by; None for processes of this machine."""
    for option in launch.job.get("launcher_options", ()):
        if option.startswith(_LINK):
            rate = parse_bandwidth(option.removeprefix(_LINK))
            return Link("lab link", "inter", rate, transport="tcp")
    return None
