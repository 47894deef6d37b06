"""2^k r designs: effects of factors at two levels, and the share of variation of each.

Jain, The Art of Computer Systems Performance Analysis (1991), chapters 17 and 18. A design is a
table of signs; an effect is half the difference between the means at its two levels.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from paceline.errors import InputError
from paceline.stats.estimate import student_t

Signs = tuple[int, ...]
"""One -1 or +1 per factor."""


@dataclass(frozen=True)
class Effect:
    """A main effect or an interaction of ``factors``; without factors, the mean.

    ``value`` has the unit of the response and the 95 % interval ``low`` to ``high`` (NaN without
    replication); ``share`` is its fraction of the total variation.
    """

    factors: tuple[str, ...]
    value: float
    low: float
    high: float
    share: float

    @property
    def name(self) -> str:
        return " x ".join(self.factors) or "mean"

    @property
    def is_clear(self) -> bool:
        return self.low > 0.0 or self.high < 0.0


@dataclass(frozen=True)
class TwoLevelAnalysis:
    """Effects of a 2^k r design, and the share of the variation that is error."""

    effects: tuple[Effect, ...]
    error_share: float
    error_variance: float
    error_degrees: int


def two_level_analysis(
    factors: Sequence[str], responses: Mapping[Signs, Sequence[float]]
) -> TwoLevelAnalysis:
    """Effects from the responses of every combination of signs, with equal replication."""
    k = len(factors)
    counts = {len(values) for values in responses.values()}
    if len(responses) != 2**k or len(counts) != 1 or not min(counts):
        raise InputError(
            f"incomplete 2^k r design: {len(responses)} of {2**k} combinations, replicated "
            f"{sorted(counts)} times",
            "run the missing launches with 'paceline study run'",
        )
    (replicates,) = counts
    means = {signs: math.fsum(values) / replicates for signs, values in responses.items()}
    runs = 2**k * replicates
    error = math.fsum(
        (value - means[signs]) ** 2 for signs, values in responses.items() for value in values
    )
    degrees = runs - 2**k
    variance = error / degrees if degrees else math.nan
    half = student_t(degrees) * math.sqrt(variance / runs) if degrees else math.nan
    values = {
        chosen: math.fsum(_sign(signs, chosen) * mean for signs, mean in means.items()) / 2**k
        for size in range(k + 1)
        for chosen in combinations(range(k), size)
    }
    # SST = SSE + 2^k r * sum of q^2 over all effects but the mean (Jain, chapter 18)
    total = error + math.fsum(runs * q * q for chosen, q in values.items() if chosen)
    effects = tuple(
        Effect(
            tuple(factors[index] for index in chosen),
            q,
            q - half,
            q + half,
            runs * q * q / total if chosen and total > 0.0 else 0.0,
        )
        for chosen, q in values.items()
    )
    return TwoLevelAnalysis(effects, error / total if total > 0.0 else 0.0, variance, degrees)


def _sign(signs: Signs, chosen: Sequence[int]) -> int:
    return math.prod(signs[index] for index in chosen)
