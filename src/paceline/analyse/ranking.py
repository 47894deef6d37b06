"""Who is faster than whom, and whether the launches can tell: t tests, Holm's correction."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from paceline.analyse.groups import LaunchGroup
from paceline.analyse.statistics import throughput
from paceline.errors import InputError
from paceline.statistics.distributions import SIGNIFICANCE
from paceline.statistics.pairs import holm, log_differences

MARGIN = 0.05
"""Configurations that differ by less are the same for most purposes."""


@dataclass(frozen=True)
class PairTest:
    """One pair: how many times faster ``faster`` is, and how sure that is.

    ``low`` and ``high`` bound the ratio with 95 % confidence, for this pair alone. ``p_value`` is
    two-sided; ``corrected_p`` is Holm's for all pairs that were tested together. ``same_p`` is
    the chance of launches like these if the two differed by 5 % or more (TOST). All are NaN
    where a side has fewer than two launches.
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
        """Whether the pair differs beyond what launches of one and the same would."""
        return self.corrected_p < SIGNIFICANCE

    @property
    def same(self) -> bool:
        """Whether the pair is the same to within `MARGIN`, which "not different" does not say."""
        return self.same_p < SIGNIFICANCE


@dataclass(frozen=True)
class Ranking:
    """Names from fastest to slowest with their groups, and a test of every pair."""

    names: tuple[str, ...]
    groups: tuple[LaunchGroup, ...]
    pairs: tuple[PairTest, ...]

    def tied_with(self, name: str) -> list[str]:
        """Those tied with ``name``, in the order of the ranking."""
        tied = {
            pair.slower if pair.faster == name else pair.faster
            for pair in self.pairs
            if name in (pair.faster, pair.slower) and not pair.different
        }
        return [other for other in self.names if other in tied]

    def place(self, name: str) -> int:
        """1 and the number of those that are surely faster."""
        return 1 + sum(pair.slower == name and pair.different for pair in self.pairs)


def rank(named: Sequence[tuple[str, LaunchGroup]]) -> Ranking:
    """Order configurations by mean throughput and test every pair over launches."""
    if len({name for name, _ in named}) != len(named):
        raise InputError("two configurations of a ranking have one name")
    ordered = sorted(named, key=lambda one: -one[1].throughput.mean)
    values = [[throughput(launch) for launch in group.launches] for _, group in ordered]
    pairs = itertools.combinations([name for name, _ in ordered], 2)
    differences = log_differences(values)
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
            one.equivalence_chance(MARGIN),
        )
        for (a, b), one, own in zip(pairs, differences, corrected, strict=True)
    )
    return Ranking(tuple(n for n, _ in ordered), tuple(g for _, g in ordered), tests)
