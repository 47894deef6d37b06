"""Tests for changes of step time between two studies, by configuration."""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from paceline.analysis.configurations import JobKey, LaunchGroup, configuration, grouped
from paceline.analysis.launch_statistics import mean_step_seconds
from paceline.errors import InputError
from paceline.stats.distributions import SIGNIFICANCE
from paceline.stats.estimate import pooled_variation
from paceline.stats.normality import check_log_normality
from paceline.stats.pairs import LogDifference, holm, mann_whitney, welch
from paceline.stats.power import detectable_change
from paceline.store import Launch

FEWEST_CAMPAIGNS = 3
"""Minimum number of earlier studies of a configuration for the variance between campaigns."""

WITH_CAMPAIGNS = "Welch with campaigns"


@dataclass(frozen=True)
class TimeChange:
    """Change of the step time of one configuration between two studies.

    ``ratio`` is new over base with its 95 % interval. ``test`` names the test of ``p_value``;
    ``corrected_p`` is Holm's over all configurations. ``detectable`` is the relative detectable
    change (power 80 %, simulated); NaN if the variance between campaigns (days, boots,
    allocations) is unknown. ``same_p`` is the p-value of equivalence within ``threshold``.
    ``campaigns`` is the number of earlier studies behind that variance.
    """

    configuration: str
    base: LaunchGroup
    new: LaunchGroup
    ratio: float
    low: float
    high: float
    p_value: float
    corrected_p: float
    same_p: float
    detectable: float
    threshold: float
    test: str
    campaigns: int

    @property
    def verdict(self) -> str:
        """Slower, faster (perhaps within the threshold), same, not detected, or inconclusive."""
        if math.isnan(self.p_value):
            return "inconclusive: too few launches"
        if self.corrected_p < SIGNIFICANCE:
            direction = "slower" if self.ratio > 1 else "faster"
            large = abs(math.log(self.ratio)) > math.log1p(self.threshold)
            return direction if large else f"{direction}, within the threshold"
        if self.same_p < SIGNIFICANCE:
            return "same"
        return "no change detected"

    @property
    def is_regression(self) -> bool:
        """Whether the configuration is significantly slower, by more than the threshold."""
        return self.verdict == "slower"


def time_changes(
    base: Sequence[Launch],
    new: Sequence[Launch],
    history: Sequence[Launch] = (),
    threshold: float = 0.02,
) -> list[TimeChange]:
    """Compare every configuration that both studies measured; an error if there is none.

    ``history`` are launches of other studies: if three or more measured a configuration, the
    variance between campaigns counts as noise too.
    """
    before, after = _by_configuration(base), _by_configuration(new)
    shared = [key for key in before if key in after]
    if not shared:
        raise InputError(
            "the two studies have no configuration in common",
            "compare their settings with 'paceline compare BASE NEW'",
        )
    campaigns = _campaigns(history)
    parts = [_Part(before[key], after[key], campaigns.get(key, ())) for key in shared]
    tests = [
        compare_seconds(
            _seconds(part.base), _seconds(part.new), [one.step.mean for one in part.earlier]
        )
        for part in parts
    ]
    corrected = holm([p for _, p, _ in tests])
    return [
        _change(part, test, own, threshold)
        for part, test, own in zip(parts, tests, corrected, strict=True)
    ]


@dataclass(frozen=True)
class _Part:
    """One configuration: base, new, and the groups of earlier studies."""

    base: LaunchGroup
    new: LaunchGroup
    earlier: Sequence[LaunchGroup]

    @property
    def has_history(self) -> bool:
        return len(self.earlier) >= FEWEST_CAMPAIGNS


def _by_configuration(launches: Sequence[Launch]) -> dict[object, LaunchGroup]:
    return {_key(group.first): group for group in grouped(launches)}


def _key(launch: Launch) -> tuple[object, ...]:
    job, *others = configuration(launch)
    assert isinstance(job, JobKey)
    return job._replace(machine=""), *others


def _campaigns(history: Sequence[Launch]) -> Mapping[object, Sequence[LaunchGroup]]:
    """Groups of each earlier study, by configuration."""
    by_study: dict[str, list[Launch]] = {}
    for launch in history:
        by_study.setdefault(launch.study, []).append(launch)
    found: dict[object, list[LaunchGroup]] = {}
    for launches in by_study.values():
        for group in grouped(launches):
            found.setdefault(_key(group.first), []).append(group)
    return found


def _seconds(group: LaunchGroup) -> list[float]:
    return [mean_step_seconds(launch) for launch in group.launches]


def compare_seconds(
    base: Sequence[float], new: Sequence[float], earlier: Sequence[float] = ()
) -> tuple[LogDifference, float, str]:
    """Ratio of new over base with the p-value and the name of the test.

    ``base`` and ``new`` have one value per launch, ``earlier`` the mean of each earlier campaign.
    """
    found = welch(new, base)
    if math.isnan(found.error):
        return found, math.nan, "none"
    if len(earlier) >= FEWEST_CAMPAIGNS:
        # Base and new are one campaign each, so their difference has twice this variance. The
        # smaller number of degrees of freedom dominates if campaigns vary more than launches.
        variance = statistics.variance(map(math.log, earlier))
        error = math.hypot(found.error, (2 * variance) ** 0.5)
        found = LogDifference(found.difference, error, min(found.degrees, len(earlier) - 1))
        return found, found.p_value, WITH_CAMPAIGNS
    if "doubtful" in (check_log_normality(base), check_log_normality(new)):
        return found, mann_whitney(base, new), "Mann-Whitney"
    return found, found.p_value, "Welch"


def _detectable(part: _Part) -> float:
    """Detectable change between two campaigns; NaN without a history or with single launches."""
    sizes = len(part.base.launches), len(part.new.launches)
    if not part.has_history or min(sizes) < 2:
        return math.nan
    spread = pooled_variation([_seconds(part.base), _seconds(part.new)])
    noise = spread**2 * statistics.fmean(1.0 / len(one.launches) for one in part.earlier)
    variance = statistics.variance(math.log(one.step.mean) for one in part.earlier)
    return detectable_change(sizes, spread, len(part.earlier), variance, noise)


def _change(
    part: _Part, test: tuple[LogDifference, float, str], corrected: float, threshold: float
) -> TimeChange:
    found, p_value, name = test
    ratio = part.new.step.mean / part.base.step.mean
    return TimeChange(
        part.new.description,
        part.base,
        part.new,
        ratio if math.isnan(found.difference) else found.ratio,
        *found.ratio_interval(),
        p_value,
        corrected,
        found.equivalence_p_value(threshold),
        _detectable(part),
        threshold,
        name,
        len(part.earlier) if part.has_history else 0,
    )


def false_positive_rate(seconds: Sequence[float], size: int) -> float:
    """False-positive rate of comparisons of neighbouring windows of ``size`` launches.

    The launches are of one job, in order of time. The level of the test is 0.05; an excess is due
    to drift of the machine. NaN with too few launches.
    """
    if len(seconds) < 2 * size or size < 2:
        return math.nan
    positives = [
        welch(seconds[begin : begin + size], seconds[begin + size : begin + 2 * size]).p_value
        < SIGNIFICANCE
        for begin in range(len(seconds) - 2 * size + 1)
    ]
    return sum(positives) / len(positives)
