"""The bandwidth that a plan needs to reach a target efficiency."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, overload

from paceline.errors import PacelineError
from paceline.predictor.predict import schedule_job
from paceline.predictor.prediction import Prediction
from paceline.predictor.prediction_inputs import PredictionInputs
from paceline.predictor.step_losses import step_losses
from paceline.predictor.whatif import on_links, with_fixed_work
from paceline.render.result import Part, PublicResult

_MOST = 1e6
"""Factor on a bandwidth that makes transfer time negligible."""
_HALVINGS = 40


@dataclass(frozen=True)
class BandwidthNeeded:
    """Bandwidth of a link (per NIC, device or node) that reaches a target efficiency, bytes/s.

    ``needed`` is None if no bandwidth reaches the target; ``reached`` is the efficiency with the
    needed or an infinite bandwidth. The efficiency is that of scaling from one node, if a replica
    fits on one (``from_one_node``); else the share of arithmetic and recomputation in the step.
    """

    link: str
    scope: str
    now: float
    now_efficiency: float
    needed: float | None
    reached: float
    from_one_node: bool = False


@dataclass(frozen=True, repr=False)
class NeededBandwidths(PublicResult, Sequence[BandwidthNeeded]):
    """The bandwidth of each link of each job that reaches the efficiency ``target``."""

    schema: ClassVar[str] = "bandwidth/1"
    target: float
    jobs: tuple[tuple[Prediction, tuple[BandwidthNeeded, ...]], ...]

    @property
    def links(self) -> tuple[BandwidthNeeded, ...]:
        """The links of all jobs."""
        return tuple(own for _, links in self.jobs for own in links)

    @overload
    def __getitem__(self, index: int) -> BandwidthNeeded: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[BandwidthNeeded, ...]: ...

    def __getitem__(self, index: int | slice) -> BandwidthNeeded | tuple[BandwidthNeeded, ...]:
        return self.links[index]

    def __len__(self) -> int:
        return len(self.links)

    def parts(self) -> list[Part]:
        """One line per link of a job; a table of several jobs."""
        from paceline.predictor.training_run_tables import bandwidth_parts

        return list(bandwidth_parts(self.target, self.jobs))

    def to_dict(self) -> dict[str, Any]:
        """Present and needed bandwidth of each link in bytes/s."""
        from paceline.predictor.training_run_tables import bandwidth_json

        return bandwidth_json(self.target, self.jobs)


def bandwidth_needed(job: PredictionInputs, target: float) -> list[BandwidthNeeded]:
    """The bandwidth needed of each link that the plan uses, changed alone."""
    case = with_fixed_work(job)
    timeline = schedule_job(case)
    losses = step_losses(timeline.step, timeline.corrections)
    ideal, now = losses.ideal + losses.recomputing, timeline.seconds
    cluster = case.cluster
    alone = _one_node_seconds(case)
    links = {
        "between nodes": cluster.inter if cluster.nodes > 1 else None,
        "in a node": cluster.intra if cluster.devices_per_node > 1 else None,
    }
    found = []
    for scope, link in links.items():
        if link is None:
            continue
        between = scope == "between nodes"

        from_one_node = between and alone is not None
        reference = alone if from_one_node and alone is not None else ideal

        def efficiency(
            factor: float, between: bool = between, reference: float = reference
        ) -> float:
            return reference / schedule_job(on_links(case, factor, between=between)).seconds

        factor, reached = _least_factor(efficiency, target)
        needed = None if factor is None else factor * link.known_bandwidth
        rates = (link.known_bandwidth, reference / now, needed, reached)
        found.append(BandwidthNeeded(link.name, scope, *rates, from_one_node=from_one_node))
    return found


def _one_node_seconds(case: PredictionInputs) -> float | None:
    """The step of one node with the same batch per replica; None if it holds no replica."""
    plan, cluster = case.plan, case.cluster
    dp = cluster.devices_per_node // (plan.tp * plan.pp * plan.cp)
    if cluster.nodes == 1 or dp == 0:
        return None
    group = plan.shard_group if plan.shard_group and dp * plan.cp % plan.shard_group == 0 else None
    try:
        own = replace(plan, dp=dp, shard_group=group, zero=plan.zero if dp * plan.cp > 1 else 0)
        node = cluster.shaped(1, own.devices)
        return schedule_job(replace(case, cluster=node, plan=own)).seconds
    except PacelineError:
        return None


def _least_factor(
    efficiency: Callable[[float], float], target: float
) -> tuple[float | None, float]:
    """The smallest factor on a bandwidth that reaches ``target``, by bisection of its logarithm."""
    most = efficiency(_MOST)
    if most < target:
        return None, most
    low, high = math.log(1.0 / _MOST), math.log(_MOST)
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        if efficiency(math.exp(middle)) < target:
            low = middle
        else:
            high = middle
    return math.exp(high), efficiency(math.exp(high))
