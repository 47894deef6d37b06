"""Analysis of variance with interactions, for any levels and unequal numbers of launches.

Sums of squares are of type II: a term is added to the model of all terms that do not contain it.
In balanced designs types I, II and III agree.
"""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

from paceline.errors import InputError
from paceline.stats.distributions import SIGNIFICANCE, f_upper_tail
from paceline.stats.normality import normality_p_value

Matrix = npt.NDArray[np.float64]
Term = tuple[str, ...]


@dataclass(frozen=True)
class VarianceRow:
    """One term: sum of squares, degrees of freedom, F ratio and p-value.

    ``share`` is its fraction of the total sum of squares. F ratio and p-value are NaN if the error
    has no degrees of freedom.
    """

    term: Term
    squares: float
    degrees: int
    share: float
    f_ratio: float
    p_value: float

    @property
    def name(self) -> str:
        return " x ".join(self.term)


@dataclass(frozen=True)
class AnalysisOfVariance:
    """Rows of the terms, sum of squares and degrees of freedom of the error, residual checks.

    A split plot has a second error, that of the whole plots; its squares are not in ``error``.
    """

    rows: tuple[VarianceRow, ...]
    error_squares: float
    error_degrees: int
    total_squares: float
    checks: "ResidualChecks"
    plot_squares: float = 0.0
    plot_degrees: int = 0

    @property
    def error_share(self) -> float:
        """Fraction of the variation that no term explains."""
        return self.error_squares / self.total_squares if self.total_squares > 0.0 else 0.0


def analyse_variance(
    factors: Mapping[str, Sequence[object]],
    responses: Sequence[float],
    order: Sequence[float] | None = None,
    interactions: int = 2,
    plots: "SplitPlot | None" = None,
) -> AnalysisOfVariance:
    """Analyse the variance of ``responses``; ``factors`` has the level of each for every response.

    Terms include interactions of up to ``interactions`` factors. ``order`` is the time of each
    response, for the trend check; by default the responses are in order of time. With ``plots``
    the factor that was held within a whole plot is tested against the variation of plots.
    """
    varied = {name: list(levels) for name, levels in factors.items() if len(set(levels)) > 1}
    if not varied:
        raise InputError("no factor has two or more levels", "give a factor at least two levels")
    values = np.asarray(responses, dtype=float)
    contrasts = {name: _contrasts(levels) for name, levels in varied.items()}
    terms = [
        term
        for size in range(1, min(interactions, len(varied)) + 1)
        for term in combinations(varied, size)
    ]
    columns = {term: _columns(term, contrasts) for term in terms}
    whole = _design(columns, terms, len(values))
    error, rank, residuals = _fit(whole, values)
    plot_squares, plot_degrees = 0.0, 0
    if plots is not None:
        blocks = _contrasts(plots.blocks)
        before, rank_blocks, _ = _fit(np.hstack([whole, blocks]), values)
        held = _contrasts(list(zip(plots.blocks, varied[plots.factor], strict=True)))
        error, rank, residuals = _fit(np.hstack([whole, blocks, held]), values)
        plot_squares, plot_degrees = max(0.0, before - error), rank - rank_blocks
    degrees = len(values) - rank
    total = float(np.sum((values - values.mean()) ** 2))
    mean_error = error / degrees if degrees else math.nan
    rows = []
    for term in terms:
        without = [other for other in terms if not set(term) <= set(other)]
        before, rank_before, _ = _fit(_design(columns, without, len(values)), values)
        after, rank_after, _ = _fit(_design(columns, [*without, term], len(values)), values)
        squares, own = max(0.0, before - after), rank_after - rank_before
        against, free = mean_error, degrees
        if plots is not None and term == (plots.factor,):
            against = plot_squares / plot_degrees if plot_degrees else math.nan
            free = plot_degrees
        ratio = squares / own / against if own and against > 0.0 else math.nan
        p_value = f_upper_tail(ratio, own, free) if not math.isnan(ratio) else math.nan
        share = squares / total if total > 0.0 else 0.0
        rows.append(VarianceRow(term, squares, own, share, ratio, p_value))
    checks = check_residuals(residuals.tolist(), (values - residuals).tolist(), order)
    return AnalysisOfVariance(
        tuple(rows), error, degrees, total, checks, plot_squares, plot_degrees
    )


@dataclass(frozen=True)
class SplitPlot:
    """Whole plots: launches of one block with the same level of ``factor`` follow each other.

    ``blocks`` has the block of each response. The machine may drift from plot to plot, so the
    factor is tested against the variation of plots (Yates 1935, "Complex experiments").
    """

    factor: str
    blocks: Sequence[int]


def _contrasts(levels: Sequence[object]) -> Matrix:
    """Sum-to-zero coding: a column per level except the last, which is -1 in all columns."""
    names = list(dict.fromkeys(levels))
    codes = np.vstack([np.eye(len(names) - 1), -np.ones(len(names) - 1)])
    return np.asarray(codes[[names.index(level) for level in levels]], dtype=float)


def _columns(term: Term, contrasts: Mapping[str, Matrix]) -> Matrix:
    product = contrasts[term[0]]
    for name in term[1:]:
        other = contrasts[name]
        product = (product[:, :, None] * other[:, None, :]).reshape(len(product), -1)
    return product


def _design(columns: Mapping[Term, Matrix], terms: Sequence[Term], count: int) -> Matrix:
    return np.hstack([np.ones((count, 1)), *(columns[term] for term in terms)])


def _fit(design: Matrix, values: Matrix) -> tuple[float, int, Matrix]:
    """Residual sum of squares, rank and residuals of a least squares fit."""
    coefficients, _, rank, _ = np.linalg.lstsq(design, values, rcond=None)
    residuals = values - design @ coefficients
    return float(residuals @ residuals), int(rank), residuals


POWERS = {1.0: "none", 0.5: "square root", 0.0: "logarithm", -1.0: "reciprocal"}
"""Box-Cox transformations by power; the nearest is suggested."""


@dataclass(frozen=True)
class ResidualChecks:
    """p-values of normality, no trend with time, and equal variance; NaN with too few residuals.

    ``transformation`` stabilises the variance; "none" if it is equal.
    """

    normality_p: float
    trend_p: float
    transformation: str

    @property
    def warnings(self) -> list[str]:
        """Violated assumptions, each with a remedy."""
        found = []
        if self.normality_p < SIGNIFICANCE:
            found.append("residuals are not normal: use the shares of variation, not the p-values")
        if self.trend_p < SIGNIFICANCE:
            found.append("residuals drift with time: check load and temperature, then rerun")
        if self.transformation != "none":
            found.append(
                f"spread grows with the level: transform the response ({self.transformation})"
            )
        return found


def check_residuals(
    residuals: Sequence[float], fitted: Sequence[float], order: Sequence[float] | None = None
) -> ResidualChecks:
    moments = order if order is not None else range(len(residuals))
    sizes = [abs(residual) for residual in residuals]
    scale = max((abs(value) for value in fitted), default=0.0)
    if max(sizes, default=0.0) <= 1e-12 * scale:  # a saturated model: only rounding is left
        return ResidualChecks(math.nan, math.nan, "none")
    spread = spearman_p_value(sizes, fitted)
    wider = spread < SIGNIFICANCE and min(fitted) > 0.0
    return ResidualChecks(
        normality_p_value(residuals),
        spearman_p_value(residuals, list(moments)),
        _transformation(sizes, fitted) if wider else "none",
    )


def spearman_p_value(first: Sequence[float], second: Sequence[float]) -> float:
    """Two-sided p-value of Spearman's rank correlation; NaN with fewer than five values."""
    count = len(first)
    if count < 5 or len(set(first)) < 2 or len(set(second)) < 2:
        return math.nan
    from scipy.stats import spearmanr

    return float(spearmanr(first, second).pvalue)


def _transformation(sizes: Sequence[float], fitted: Sequence[float]) -> str:
    """Box-Cox transformation that makes the variance equal.

    Its power is 1 - b, where b is the slope of log |residual| over log level: a standard deviation
    proportional to y^b is constant for the integral of y^-b, y^(1 - b).
    """
    floor = 1e-9 * max(sizes)
    levels = [math.log(value) for value in fitted]
    if len(set(levels)) < 2:
        return "none"
    widths = [math.log(max(size, floor)) for size in sizes]
    slope = statistics.linear_regression(levels, widths).slope
    return POWERS[min(POWERS, key=lambda power: abs(1.0 - slope - power))]
