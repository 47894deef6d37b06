"""Tests for changes of step time between two studies, by configuration."""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from paceline.analysis.configurations import JobKey, LaunchGroup, configuration, grouped
from paceline.analysis.launch_statistics import mean_step_seconds
from paceline.errors import InputError
from paceline.stats.distributions import SIGNIFICANCE
from paceline.stats.normality import check_log_normality
from paceline.stats.pairs import LogDifference, holm, mann_whitney, welch
from paceline.store import Launch

FEWEST_SESSIONS = 3
"""Minimum number of earlier studies of a configuration for the variance between sessions."""

WITH_SESSIONS = "Welch with sessions"


@dataclass(frozen=True)
class TimeChange:
    """Change of the step time of one configuration between two studies.

    ``ratio`` is new over base with its 95 % interval. ``test`` names the test of ``p_value``;
    ``corrected_p`` is Holm's over all configurations. ``detectable`` is the relative detectable
    change (power 80 %); NaN if the variance between sessions (days, boots, allocations) is
    unknown. ``same_p`` is the p-value of equivalence within ``threshold``. ``sessions`` is the
    number of earlier studies behind that variance.
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
    sessions: int

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
    variance between sessions counts as noise too.
    """
    before, after = _by_configuration(base), _by_configuration(new)
    shared = [key for key in before if key in after]
    if not shared:
        raise InputError(
            "the two studies have no configuration in common",
            "compare their settings with 'paceline compare BASE NEW'",
        )
    sessions = _sessions(history)
    parts = [(before[key], after[key], sessions.get(key, ())) for key in shared]
    tests = [_test(*part) for part in parts]
    corrected = holm([p for _, p, _ in tests])
    return [
        _change(part, test, own, threshold)
        for part, test, own in zip(parts, tests, corrected, strict=True)
    ]


def _by_configuration(launches: Sequence[Launch]) -> dict[object, LaunchGroup]:
    return {_key(group.first): group for group in grouped(launches)}


def _key(launch: Launch) -> tuple[object, ...]:
    job, *others = configuration(launch)
    assert isinstance(job, JobKey)
    return job._replace(machine=""), *others


def _sessions(history: Sequence[Launch]) -> Mapping[object, Sequence[float]]:
    """Logarithm of the mean step time of each earlier study, by configuration."""
    by_study: dict[str, list[Launch]] = {}
    for launch in history:
        by_study.setdefault(launch.study, []).append(launch)
    found: dict[object, list[float]] = {}
    for launches in by_study.values():
        for group in grouped(launches):
            found.setdefault(_key(group.first), []).append(math.log(group.step.mean))
    return found


def _seconds(group: LaunchGroup) -> list[float]:
    return [mean_step_seconds(launch) for launch in group.launches]


def _test(
    base: LaunchGroup, new: LaunchGroup, sessions: Sequence[float]
) -> tuple[LogDifference, float, str]:
    first, second = _seconds(base), _seconds(new)
    found = welch(second, first)
    if math.isnan(found.error):
        return found, math.nan, "none"
    if len(sessions) >= FEWEST_SESSIONS:
        # Base and new are one session each, so their difference has twice this variance.
        between = statistics.variance(sessions)
        # The smaller number of degrees of freedom dominates if sessions vary more than launches.
        degrees = min(found.degrees, len(sessions) - 1)
        found = LogDifference(
            found.difference, math.hypot(found.error, (2 * between) ** 0.5), degrees
        )
        return found, found.p_value, WITH_SESSIONS
    if "doubtful" in (check_log_normality(first), check_log_normality(second)):
        return found, mann_whitney(first, second), "Mann-Whitney"
    return found, found.p_value, "Welch"


def _change(
    part: tuple[LaunchGroup, LaunchGroup, Sequence[float]],
    test: tuple[LogDifference, float, str],
    corrected: float,
    threshold: float,
) -> TimeChange:
    base, new, sessions = part
    found, p_value, name = test
    ratio = new.step.mean / base.step.mean
    with_sessions = name == WITH_SESSIONS
    return TimeChange(
        new.description,
        base,
        new,
        ratio if math.isnan(found.difference) else found.ratio,
        *found.ratio_interval(),
        p_value,
        corrected,
        found.equivalence_p_value(threshold),
        found.detectable if with_sessions else math.nan,
        threshold,
        name,
        len(sessions) if with_sessions else 0,
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
