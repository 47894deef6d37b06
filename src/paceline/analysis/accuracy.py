"""Accuracy of launches that trained by epochs, and whether more processes lose accuracy.

Launches of one configuration differ by their seed. The n-th launches of all configurations have
the same seed, so configurations are compared in pairs.
"""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from paceline.analysis.configurations import configuration, describe_configuration
from paceline.analysis.launch_statistics import every_step_seconds
from paceline.stats.distributions import SIGNIFICANCE
from paceline.stats.estimate import Estimate, estimate, student_t
from paceline.stats.pairs import LogDifference, holm, paired_difference
from paceline.store import Launch, Status

MARGIN = 0.01
"""Default margin: smaller differences of accuracy count as equal."""

EQUIVALENCE_CONFIDENCE = 1.0 - 2.0 * SIGNIFICANCE
"""The interval of this level is within the margin exactly if both one-sided tests reject."""


@dataclass(frozen=True)
class TrainedGroup:
    """Launches of one configuration that trained by epochs, one per seed.

    ``accuracies`` are estimates after each epoch, ``train_losses`` and ``test_losses`` means.
    ``reached`` launches reached the target; ``seconds_to_target`` is training time without
    evaluation, None unless all of them did.
    """

    configuration: str
    launches: tuple[Launch, ...]
    accuracies: tuple[Estimate, ...]
    train_losses: tuple[float, ...]
    test_losses: tuple[float, ...]
    reached: int = 0
    seconds_to_target: Estimate | None = None

    @property
    def by_seed(self) -> dict[int, float]:
        """Accuracy after the last epoch, by replicate."""
        return {
            one.job.get("replicate", 0): _epochs(one)[-1]["test_accuracy"] for one in self.launches
        }


@dataclass(frozen=True)
class AccuracyLoss:
    """Comparison of a configuration with the one with the fewest processes, over ``pairs``.

    ``difference`` is the difference of accuracy. ``p_value`` is that of two one-sided tests against
    the margin, corrected for multiple comparisons.
    """

    base: str
    configuration: str
    pairs: int
    difference: LogDifference
    p_value: float
    margin: float

    @property
    def interval(self) -> tuple[float, float]:
        """90 % interval of the difference, before correction."""
        return self.difference.interval(EQUIVALENCE_CONFIDENCE)

    @property
    def verdict(self) -> str:
        """Result of the equivalence test."""
        if math.isnan(self.p_value):
            return "unchecked: needs 2 seeds or more"
        if self.p_value < SIGNIFICANCE:
            return "the same"
        low, high = self.interval
        if high < 0.0:
            return "lower"
        return "higher" if low > 0.0 else "inconclusive: add launches"


@dataclass(frozen=True)
class StudyAccuracy:
    """Every configuration that trained by epochs, and its comparison with its base."""

    groups: tuple[TrainedGroup, ...]
    losses: tuple[AccuracyLoss, ...]
    target: float | None = None
    margin: float = MARGIN
    test_samples: int = field(default=0)


def study_accuracy(
    launches: Sequence[Launch], aims: Mapping[str, Any] | None = None
) -> StudyAccuracy | None:
    """Accuracy of the launches of a study; None if none trained by epochs."""
    target = (aims or {}).get("target")
    margin = (aims or {}).get("margin") or MARGIN
    members: dict[tuple[object, ...], list[Launch]] = {}
    for launch in launches:
        if launch.status is Status.FINISHED and _epochs(launch):
            members.setdefault(configuration(launch), []).append(launch)
    if not members:
        return None
    groups = tuple(_trained(own, target) for own in members.values())
    samples = min(int(_epochs(own.launches[0])[0]["test_samples"]) for own in groups)
    return StudyAccuracy(groups, _losses(groups, margin, samples), target, margin, samples)


def _epochs(launch: Launch) -> list[dict[str, float]]:
    return launch.outcome.facts.get("epochs") or []


def _trained(launches: Sequence[Launch], target: float | None) -> TrainedGroup:
    by_epoch = list(zip(*map(_epochs, launches), strict=False))
    times = [_seconds_to(launch, target) for launch in launches] if target else []
    reached = [seconds for seconds in times if seconds is not None]

    def means(key: str) -> tuple[float, ...]:
        return tuple(statistics.fmean(one[key] for one in own) for own in by_epoch)

    return TrainedGroup(
        describe_configuration(launches[0]),
        tuple(launches),
        tuple(_share([one["test_accuracy"] for one in own]) for own in by_epoch),
        means("train_loss"),
        means("test_loss"),
        len(reached),
        estimate(reached) if reached and len(reached) == len(times) else None,
    )


def _share(values: Sequence[float]) -> Estimate:
    """Mean of fractions, with the interval of Student's t on the values, clipped to [0, 1]."""
    mean, count = statistics.fmean(values), len(values)
    if count < 2:
        return Estimate(mean, math.nan, math.nan, count, math.nan)
    deviation = statistics.stdev(values)
    half = student_t(count - 1) * deviation / math.sqrt(count)
    return Estimate(mean, max(0.0, mean - half), min(1.0, mean + half), count, deviation)


def _seconds_to(launch: Launch, target: float) -> float | None:
    """Seconds of all steps until the end of the first epoch that reached ``target``."""
    steps, done = every_step_seconds(launch), 0
    for epoch in _epochs(launch):
        done += int(epoch["steps"])
        if epoch["test_accuracy"] >= target:
            return math.fsum(steps[:done])
    return None


def _losses(
    groups: Sequence[TrainedGroup], margin: float, samples: int
) -> tuple[AccuracyLoss, ...]:
    found = []
    for group in groups:
        same_job = [one for one in groups if _without_processes(one) == _without_processes(group)]
        base = min(same_job, key=lambda one: one.launches[0].world_size)
        if base is group:
            continue
        theirs, own = base.by_seed, group.by_seed
        common = sorted(theirs.keys() & own.keys())
        # Accuracies are counts over ``samples``: two seeds with equal counts would otherwise have a
        # variance of zero, and any difference would be significant.
        difference = paired_difference(
            [own[seed] for seed in common], [theirs[seed] for seed in common], 1.0 / samples
        )
        found.append((base, group, len(common), difference))
    corrected = holm([difference.tost_p_value(margin) for *_, difference in found])
    return tuple(
        AccuracyLoss(base.configuration, group.configuration, pairs, difference, p_value, margin)
        for (base, group, pairs, difference), p_value in zip(found, corrected, strict=True)
    )


def _without_processes(group: TrainedGroup) -> tuple[object, ...]:
    """Configuration without its number of processes."""
    job = group.launches[0].job
    factors = {k: v for k, v in job.get("factors", {}).items() if k != "processes"}
    kept = ("model", "framework", "precision", "epochs", "launcher")
    return (*(job.get(key) for key in kept), repr(job.get("data")), repr(sorted(factors.items())))
