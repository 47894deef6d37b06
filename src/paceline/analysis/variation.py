"""Sources of variance of a configuration, optimal repetition, and scaling laws."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from paceline.analysis.configurations import LaunchGroup
from paceline.analysis.launch_statistics import mean_step_seconds, step_seconds
from paceline.errors import InputError
from paceline.stats.hierarchy import (
    Repetition,
    VarianceComponents,
    best_repetition,
    variance_components,
)
from paceline.stats.laws import LAWS, FittedLaw, fit_law
from paceline.stats.step_statistics import effective_sample_size


@dataclass(frozen=True)
class Variation:
    """Variance of a configuration by launch, rank and step, and the optimal repetition.

    ``available_seconds`` is the total time of its launches; ``best`` uses the same time.
    """

    group: LaunchGroup
    components: VarianceComponents
    available_seconds: float
    best: Repetition


def variation_of(group: LaunchGroup) -> Variation | None:
    """Variance components of the launches of a configuration; None with fewer than two.

    Launches without a total time (imported ones) give no optimal repetition.
    """
    totals = [one.outcome.facts.get("seconds") for one in group.launches]
    known = [total for total in totals if total is not None]
    if len(group.launches) < 2 or len(known) < len(totals):
        return None
    by_launch = [
        [rank.wall_seconds[one.warmup_steps :] for rank in one.outcome.ranks]
        for one in group.launches
    ]
    counted = [step_seconds(one) for one in group.launches]
    # Time of a launch outside counted steps: start, warm-up and end. It is the price of a further
    # launch, which the optimal repetition weighs against further steps.
    start = statistics.median(
        max(0.0, total - sum(own)) for total, own in zip(known, counted, strict=True)
    )
    effective = statistics.fmean(effective_sample_size(own) / len(own) for own in counted)
    best = best_repetition(
        found := variance_components(by_launch), start, group.step.mean, sum(known), effective
    )
    return Variation(group, found, sum(known), best)


def fitted_laws(groups: Sequence[LaunchGroup]) -> list[FittedLaw]:
    """Weak-scaling laws fitted to plain groups of one job, the best first.

    Empty for several jobs or too few numbers of processes.
    """
    plain = [
        one
        for one in groups
        if one.first.instrument == "none" and (one.first.synchronised or one.first.world_size == 1)
    ]
    seconds = {
        one.first.world_size: [mean_step_seconds(launch) for launch in one.launches]
        for one in plain
    }
    jobs = {(one.first.framework, one.first.model, one.first.batch_per_rank) for one in plain}
    if len(jobs) != 1 or len(seconds) < len(plain):
        return []
    found = []
    for law in LAWS["weak"].values():
        try:
            found.append(fit_law(law, seconds))
        except InputError:
            continue
    return sorted(found, key=lambda one: one.criterion)
