"""Who is faster than whom, and whether the launches can tell: t tests, Holm's correction.

Few launches tell little of how much launches vary. Those of all configurations together tell
more, and they ran on one machine: each is taken to vary as much as all do, or as itself does
where that is more. Equals are then seldom called different even where one is much noisier than
the rest, and three launches each suffice to tell what is twice as fast, which Welch's test, that
knows nothing of the others, mostly cannot.
"""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from paceline.analyse.groups import LaunchGroup
from paceline.analyse.statistics import throughput
from paceline.analyse.student import lower_tail
from paceline.errors import InputError

SIGNIFICANCE = 0.05
"""Chance, over all pairs together, of calling equals different."""


@dataclass(frozen=True)
class PairTest:
    """One pair: how many times faster ``faster`` is, and how sure that is.

    ``p_value`` is two-sided; ``corrected_p`` is Holm's for all pairs that were tested together.
    Both are NaN where a side has fewer than two launches.
    """

    faster: str
    slower: str
    ratio: float
    p_value: float
    corrected_p: float

    @property
    def different(self) -> bool:
        """Whether the pair differs beyond what launches of one and the same would."""
        return self.corrected_p < SIGNIFICANCE


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
    chances = pair_chances(values)
    means = {name: group.throughput.mean for name, group in ordered}
    tests = tuple(
        PairTest(a, b, means[a] / means[b], p, corrected)
        for (a, b), p, corrected in zip(pairs, chances, holm(chances), strict=True)
    )
    return Ranking(tuple(n for n, _ in ordered), tuple(g for _, g in ordered), tests)


def pair_chances(groups: Sequence[Sequence[float]]) -> list[float]:
    """Two-sided p-value of every pair of groups of positive numbers, that their sizes differ.

    Logarithms are compared: noise is a share of what it disturbs. NaN where a group has fewer
    than two.
    """
    logarithms = [[math.log(value) for value in group] for group in groups]
    squares = [_sum_of_squares(group) for group in logarithms]
    degrees = sum(max(0, len(group) - 1) for group in groups)
    pooled = math.fsum(squares) / degrees if degrees else math.nan
    sides = [
        _mean_and_share(group, square, pooled)
        for group, square in zip(logarithms, squares, strict=True)
    ]
    return [_chance(a, b, degrees) for a, b in itertools.combinations(sides, 2)]


def _chance(first: tuple[float, float], second: tuple[float, float], degrees: int) -> float:
    (mean_a, share_a), (mean_b, share_b) = first, second
    spread = share_a + share_b
    if math.isnan(spread):
        return math.nan
    if spread == 0.0:
        return 1.0 if mean_a == mean_b else 0.0
    return 2.0 * lower_tail(-abs(mean_a - mean_b) / math.sqrt(spread), degrees)


def holm(p_values: Sequence[float]) -> list[float]:
    """p-values corrected for being several (Holm's step-down); NaN stays, and counts for none."""
    known = sorted((p, index) for index, p in enumerate(p_values) if not math.isnan(p))
    corrected = list(p_values)
    reached = 0.0
    for number, (p, index) in enumerate(known):
        reached = max(reached, min(1.0, p * (len(known) - number)))
        corrected[index] = reached
    return corrected


def _mean_and_share(values: Sequence[float], squares: float, pooled: float) -> tuple[float, float]:
    """Mean, and the square of its standard error, by the larger of own and pooled variance."""
    count = len(values)
    if count < 2:
        return math.nan, math.nan
    return math.fsum(values) / count, max(squares / (count - 1), pooled) / count


def _sum_of_squares(values: Sequence[float]) -> float:
    mean = math.fsum(values) / len(values)
    return math.fsum((value - mean) ** 2 for value in values)
