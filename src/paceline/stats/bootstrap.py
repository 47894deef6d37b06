"""Bootstrap interval of a mean, and whether it contradicts Student's t."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from paceline.stats.estimate import CONFIDENCE, Estimate, estimate
from paceline.stats.normality import ENOUGH, check_log_normality

# Intervals need at least 1,000 (Efron and Tibshirani 1993, "An introduction to the bootstrap").
RESAMPLES = 2000
BOOTSTRAP_SUFFICES = 20
"""With fewer launches the coverage of the bootstrap is below that of Student's t."""

DIFFERS = 1 / 3
"""Intervals differ if a bound differs by more than this fraction of the half width."""


@dataclass(frozen=True)
class BootstrapInterval:
    """Bootstrap interval of a mean, compared with Student's t.

    ``normality`` is that of the logarithms: unchecked, plausible or doubtful. ``recommendation``
    names one of the intervals with a reason; it is empty if they agree.
    """

    low: float
    high: float
    normality: str
    recommendation: str


def bootstrap_interval(values: Sequence[float]) -> BootstrapInterval | None:
    """Bias-corrected and accelerated (BCa) bootstrap interval; None with fewer than 8 launches."""
    if len(values) < ENOUGH:
        return None
    first = estimate(values)
    low, high = bca_interval(values)
    normality = check_log_normality(values) if min(values) > 0 else "unchecked"
    off = max(abs(low - first.low), abs(high - first.high))
    recommendation = "" if off <= DIFFERS * first.half_width else _recommend(first, normality)
    return BootstrapInterval(low, high, normality, recommendation)


def _recommend(first: Estimate, normality: str) -> str:
    if normality == "doubtful" and first.launches >= BOOTSTRAP_SUFFICES:
        return (
            "launches are not log-normal and there are enough of them: use the bootstrap interval"
        )
    if normality == "doubtful":
        return (
            "launches are not log-normal, but too few for the bootstrap: use Student's t, and add "
            f"launches, up to {BOOTSTRAP_SUFFICES}"
        )
    return "log-normality of launches is not rejected: use Student's t"


def bca_interval(
    values: Sequence[float], confidence: float = CONFIDENCE, seed: int = 1
) -> tuple[float, float]:
    """BCa bootstrap interval of the mean (Efron 1987), 2000 seeded resamples."""
    from scipy.stats import bootstrap

    data = np.asarray(values, dtype=float)
    if data.min() == data.max():  # SciPy returns NaN for the acceleration of constant data
        return float(data[0]), float(data[0])
    found = bootstrap(
        (data,),
        np.mean,
        n_resamples=RESAMPLES,
        confidence_level=confidence,
        method="BCa",
        rng=np.random.default_rng(seed),
    ).confidence_interval
    return float(found.low), float(found.high)
