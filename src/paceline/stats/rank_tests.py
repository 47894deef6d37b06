"""Rank tests, for launches whose logarithms are not normal."""

from collections.abc import Sequence

EXACT_UP_TO = 25
"""The p-value is exact up to this number of values in both groups together."""


def mann_whitney(first: Sequence[float], second: Sequence[float]) -> float:
    """Two-sided p-value of the Mann-Whitney U test.

    Exact up to 25 values without ties, otherwise the normal approximation with tie and continuity
    corrections. With three values each, p is at least 0.1.
    """
    from scipy.stats import mannwhitneyu

    together = {*first, *second}
    if len(together) == 1:
        return 1.0
    values = len(first) + len(second)
    exact = values <= EXACT_UP_TO and len(together) == values
    found = mannwhitneyu(first, second, method="exact" if exact else "asymptotic")
    return min(1.0, float(found.pvalue))
