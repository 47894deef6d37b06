"""Where the variation of a configuration arises, how to spend time on it, and how it scales."""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from paceline.analyse.groups import LaunchGroup
from paceline.analyse.statistics import mean_step_seconds, step_seconds
from paceline.errors import InputError
from paceline.statistics.hierarchy import (
    Repetition,
    VarianceComponents,
    best_repetition,
    variance_components,
)
from paceline.statistics.laws import LAWS, FittedLaw, fit_law
from paceline.statistics.series import effective_sample_size


@dataclass(frozen=True)
class Variation:
    """Variance of a configuration by launch, rank and step, and the best use of its time.

    ``available_seconds`` is what its launches took; ``best`` spends as much.
    """

    group: LaunchGroup
    components: VarianceComponents
    available_seconds: float
    best: Repetition


def variation_of(group: LaunchGroup) -> Variation | None:
    """What the launches of a configuration tell of their variation; None with fewer than two.

    Launches that do not say how long they took, imported ones, cannot be planned by.
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
    start = statistics.median(
        max(0.0, total - sum(own)) for total, own in zip(known, counted, strict=True)
    )
    effective = statistics.fmean(effective_sample_size(own) / len(own) for own in counted)
    best = best_repetition(
        found := variance_components(by_launch), start, group.step.mean, sum(known), effective
    )
    return Variation(group, found, sum(known), best)


def fitted_laws(groups: Sequence[LaunchGroup]) -> list[FittedLaw]:
    """Laws of weak scaling fitted to plain groups of one job, the better ones first.

    Empty where they are of several jobs, or of too few numbers of processes.
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
