"""Ranking of configurations by throughput: t tests of every pair with Holm's correction."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from paceline.analysis.configurations import LaunchGroup
from paceline.analysis.launch_statistics import mean_step_seconds
from paceline.errors import InputError
from paceline.stats.distributions import SIGNIFICANCE
from paceline.stats.pairs import holm, log_differences

MARGIN = 0.05
"""Margin of equivalence: smaller differences are irrelevant for most purposes."""


@dataclass(frozen=True)
class PairTest:
    """Test of one pair; ``ratio`` is the throughput of ``faster`` over ``slower``.

    ``low`` to ``high`` is the 95 % interval of the ratio, for this pair alone. ``p_value`` is
    two-sided; ``corrected_p`` is Holm's over all pairs. ``same_p`` is the p-value of equivalence
    within 5 % (TOST). All are NaN if a side has fewer than two launches.
    """

    faster: str
    slower: str
    ratio: float
    low: float
    high: float
    p_value: float
    corrected_p: float
    same_p: float

    @property
    def different(self) -> bool:
        """Whether the difference of the pair is significant."""
        return self.corrected_p < SIGNIFICANCE

    @property
    def same(self) -> bool:
        """Whether the pair is equivalent within `MARGIN`; "not different" does not imply this."""
        return self.same_p < SIGNIFICANCE


@dataclass(frozen=True)
class Ranking:
    """Names and groups from fastest to slowest, and a test of every pair."""

    names: tuple[str, ...]
    groups: tuple[LaunchGroup, ...]
    pairs: tuple[PairTest, ...]

    def tied_with(self, name: str) -> list[str]:
        """Names without a significant difference from ``name``, in the order of the ranking."""
        tied = {
            pair.slower if pair.faster == name else pair.faster
            for pair in self.pairs
            if name in (pair.faster, pair.slower) and not pair.different
        }
        return [other for other in self.names if other in tied]

    def rank_of(self, name: str) -> int:
        """1 plus the number of significantly faster configurations."""
        return 1 + sum(pair.slower == name and pair.different for pair in self.pairs)


def rank(named: Sequence[tuple[str, LaunchGroup]]) -> Ranking:
    """Order configurations by mean throughput and test every pair over launches."""
    if len({name for name, _ in named}) != len(named):
        raise InputError("two configurations of a ranking have the same name")
    ordered = sorted(named, key=lambda one: -one[1].throughput.mean)
    values = [
        [mean_step_seconds(launch) / launch.samples_per_step for launch in group.launches]
        for _, group in ordered
    ]
    pairs = itertools.combinations([name for name, _ in ordered], 2)
    differences = [one.inverse for one in log_differences(values)]
    corrected = holm([one.p_value for one in differences])
    means = {name: group.throughput.mean for name, group in ordered}
    tests = tuple(
        PairTest(
            a,
            b,
            means[a] / means[b],
            *one.ratio_interval(),
            one.p_value,
            own,
            one.equivalence_p_value(MARGIN),
        )
        for (a, b), one, own in zip(pairs, differences, corrected, strict=True)
    )
    return Ranking(tuple(n for n, _ in ordered), tuple(g for _, g in ordered), tests)
