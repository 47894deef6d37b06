"""A change between two studies, or noise: every configuration that both measured."""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from paceline.analyse.groups import JobKey, LaunchGroup, configuration, grouped
from paceline.analyse.statistics import mean_step_seconds
from paceline.errors import InputError
from paceline.statistics.distributions import SIGNIFICANCE
from paceline.statistics.normality import log_normality_words
from paceline.statistics.pairs import LogDifference, holm, smallest_visible, welch
from paceline.statistics.rank_tests import mann_whitney
from paceline.store import Launch

FEWEST_SESSIONS = 3
"""Earlier studies of a configuration from which on their means tell how sessions differ."""


@dataclass(frozen=True)
class TimeChange:
    """One configuration before and after: seconds of a step, how many times, and how surely.

    ``ratio`` is new over base with its 95 % interval. ``test`` names what ``p_value`` is of;
    ``corrected_p`` is Holm's over all configurations. ``smallest`` is the least change, as a
    part, that as many launches show in 8 of 10 cases. ``same_p`` is the chance of such launches
    if the two differed by ``threshold`` or more. ``sessions`` is how many earlier studies told
    how much one session differs from the next.
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
    smallest: float
    threshold: float
    test: str
    sessions: int

    @property
    def verdict(self) -> str:
        """slower, faster, slower but less than asked for, same, or what cannot be told."""
        if math.isnan(self.p_value):
            return "cannot tell: too few launches"
        if self.corrected_p < SIGNIFICANCE:
            word = "slower" if self.ratio > 1 else "faster"
            large = abs(math.log(self.ratio)) > math.log1p(self.threshold)
            return word if large else f"{word}, within the threshold"
        if self.same_p < SIGNIFICANCE:
            return "same"
        return "no change seen"

    @property
    def is_regression(self) -> bool:
        """Whether it is surely slower, by more than the threshold."""
        return self.verdict == "slower"


def time_changes(
    base: Sequence[Launch],
    new: Sequence[Launch],
    history: Sequence[Launch] = (),
    threshold: float = 0.02,
) -> list[TimeChange]:
    """Every configuration that both studies measured; an error if there is none.

    ``history`` are launches of other studies: where three or more measured a configuration, the
    difference between sessions counts as noise too.
    """
    before, after = _by_configuration(base), _by_configuration(new)
    shared = [key for key in before if key in after]
    if not shared:
        raise InputError(
            "the two studies have no configuration in common",
            "'paceline diff BASE NEW' says how they differ",
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
    """The configuration, whatever the machine."""
    job, *others = configuration(launch)
    assert isinstance(job, JobKey)
    return job._replace(machine=""), *others


def _sessions(history: Sequence[Launch]) -> Mapping[object, Sequence[float]]:
    """Mean logarithm of seconds of each earlier study, by configuration."""
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
    """Difference, p-value and the name of the test."""
    first, second = _seconds(base), _seconds(new)
    found = welch(second, first)
    if math.isnan(found.error):
        return found, math.nan, "none"
    if len(sessions) >= FEWEST_SESSIONS:
        between = statistics.variance(sessions)
        degrees = min(found.degrees, len(sessions) - 1)
        found = LogDifference(
            found.difference, math.hypot(found.error, (2 * between) ** 0.5), degrees
        )
        return found, found.p_value, "Welch with sessions"
    if "doubtful" in (log_normality_words(first), log_normality_words(second)):
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
    logs = [[math.log(value) for value in _seconds(group)] for group in (base, new)]
    deviations = [statistics.variance(own) for own in logs if len(own) > 1]
    spread = math.sqrt(statistics.fmean(deviations)) if deviations else math.nan
    return TimeChange(
        new.words,
        base,
        new,
        ratio if math.isnan(found.difference) else found.ratio,
        *found.ratio_interval(),
        p_value,
        corrected,
        found.equivalence_chance(threshold),
        smallest_visible(len(logs[0]), len(logs[1]), spread),
        threshold,
        name,
        len(sessions) if name == "Welch with sessions" else 0,
    )


def false_alarms(seconds: Sequence[float], size: int) -> float:
    """How often neighbours in time are called different: windows of ``size`` launches each.

    Of launches of one and the same job in the order in which they ran; 0.05 is what the test
    allows itself, more is the machine's. NaN where there are too few.
    """
    if len(seconds) < 2 * size or size < 2:
        return math.nan
    alarms = [
        welch(seconds[begin : begin + size], seconds[begin + size : begin + 2 * size]).p_value
        < SIGNIFICANCE
        for begin in range(len(seconds) - 2 * size + 1)
    ]
    return sum(alarms) / len(alarms)
