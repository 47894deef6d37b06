"""Tests by ranks, for launches whose logarithms are not normal: no distribution is assumed."""

import itertools
import math
import statistics
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

EXACT_UP_TO = 25
"""Values of two groups together up to which the chance is counted exactly."""

_NORMAL = statistics.NormalDist()


def mann_whitney(first: Sequence[float], second: Sequence[float]) -> float:
    """Two-sided chance that equals would be ordered so unevenly, or more.

    Exact up to 25 values without ties, else by the normal distribution with ties corrected.
    Three against three cannot come below 0.1.
    """
    n, m = len(first), len(second)
    ranks = midranks([*first, *second])
    above = math.fsum(ranks[:n]) - n * (n + 1) / 2
    extreme = min(above, n * m - above)
    ties = _tie_sum([*first, *second])
    if n + m <= EXACT_UP_TO and not ties:
        counts = _orderings(n, m)
        return min(1.0, 2.0 * sum(counts[: int(extreme) + 1]) / math.comb(n + m, n))
    total = n + m
    variance = n * m / 12.0 * (total + 1 - ties / (total * (total - 1)))
    if variance <= 0.0:
        return 1.0
    score = (extreme + 0.5 - n * m / 2.0) / math.sqrt(variance)
    return min(1.0, 2.0 * _NORMAL.cdf(score))


def midranks(values: Sequence[float]) -> list[float]:
    """Rank of each value from 1, equals sharing the mean of theirs."""
    order = sorted(range(len(values)), key=lambda index: values[index])
    ranks = [0.0] * len(values)
    reached = 0
    for _, members in itertools.groupby(order, key=lambda index: values[index]):
        same = list(members)
        for index in same:
            ranks[index] = reached + (len(same) + 1) / 2
        reached += len(same)
    return ranks


def _tie_sum(values: Sequence[float]) -> float:
    return float(sum(count**3 - count for count in Counter(values).values()))


@lru_cache(maxsize=64)
def _orderings(n: int, m: int) -> tuple[int, ...]:
    """How many orderings of two groups have 0, 1, 2, ... pairs with the first one above."""
    if n == 0 or m == 0:
        return (1,)
    counts = [0] * (n * m + 1)
    for pairs, count in enumerate(_orderings(n - 1, m)):
        counts[pairs + m] += count
    for pairs, count in enumerate(_orderings(n, m - 1)):
        counts[pairs] += count
    return tuple(counts)
