"""Constants and effects of quantities from linearised measurements, with variance components.

Each measurement is a weighted sum of quantities plus noise. Quantities are a
constant plus effects of levels; effects of one factor are draws from a normal distribution whose
variance is estimated together with them (expectation maximisation), so that a factor that explains
nothing shrinks to nothing. Residuals are robust: Student's t with few degrees of freedom.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from paceline.predictor.uncertainty.covariates import Covariates
from paceline.predictor.uncertainty.mixed_effects import Hierarchy, Quantity, Uncertain

FloatArray = npt.NDArray[np.float64]
_DEGREES_OF_FREEDOM = 3.5
_PRIOR_LEVELS = 2.0
"""Weight of the initial deviation of a factor, in levels."""
_LEAST_DEVIATION = 0.01
_LEAST_NOISE = 0.01
_MOST_GROWTH = 2.0
"""Maximum growth of a deviation over its initial value. Shares near 0 or 1 do not bound it, so
without a limit it would diverge."""


@dataclass
class Columns:
    """Every constant and every effect of some quantities, as one vector."""

    quantities: tuple[Quantity, ...]
    index: dict[tuple[str, str, str], int] = field(default_factory=dict)

    @classmethod
    def of(cls, quantities: Sequence[Quantity], rows: Sequence[Covariates]) -> "Columns":
        """Columns for the levels that occur in ``rows``."""
        columns = cls(tuple(quantities))
        for quantity in quantities:
            columns._add(quantity.name, "", "")
            for factor in quantity.factors:
                for level in sorted({each.level(factor.name) for each in rows} - {""}):
                    columns._add(quantity.name, factor.name, level)
        return columns

    def _add(self, quantity: str, factor: str, level: str) -> None:
        self.index[quantity, factor, level] = len(self.index)

    def members(self, quantity: Quantity, rows: Sequence[Covariates]) -> FloatArray:
        """Matrix that takes the vector to the value of ``quantity`` for each row."""
        matrix = np.zeros((len(rows), len(self.index)))
        matrix[:, self.index[quantity.name, "", ""]] = 1.0
        for factor in quantity.factors:
            for number, row in enumerate(rows):
                column = self.index.get((quantity.name, factor.name, row.level(factor.name)))
                if column is not None:
                    matrix[number, column] = 1.0
        return matrix

    def prior_mean(self) -> FloatArray:
        """Priors of constants, and the priors of levels, most of them flat."""
        mean = np.zeros(len(self.index))
        for quantity in self.quantities:
            mean[self.index[quantity.name, "", ""]] = quantity.prior
            factors = {factor.name: factor for factor in quantity.factors}
            for (name, factor, level), column in self.index.items():
                if name == quantity.name and factor:
                    mean[column] = factors[factor].expected_effect(level)
        return mean

    def groups(self) -> dict[tuple[str, str], npt.NDArray[np.intp]]:
        """Columns of each factor of each quantity."""
        found: dict[tuple[str, str], list[int]] = {}
        for (quantity, factor, _), column in self.index.items():
            if factor:
                found.setdefault((quantity, factor), []).append(column)
        return {key: np.array(columns) for key, columns in found.items()}


@dataclass(frozen=True)
class MixedFit:
    """What was fitted: the vector with its covariance, deviations of factors, and the noise."""

    columns: Columns
    vector: FloatArray
    covariance: FloatArray
    deviations: Mapping[tuple[str, str], float]
    noise: float

    def hierarchies(self) -> dict[str, Hierarchy]:
        """Each quantity with its observed levels, without those of grouping factors."""
        found = {}
        for quantity in self.columns.quantities:
            shown = {factor.name for factor in quantity.factors if not factor.grouping}
            levels: dict[str, dict[str, Uncertain]] = {}
            for (name, factor, level), column in self.columns.index.items():
                if name == quantity.name and factor in shown:
                    levels.setdefault(factor, {})[level] = self._estimate(column)
            found[quantity.name] = Hierarchy(
                quantity,
                self._estimate(self.columns.index[quantity.name, "", ""]),
                {
                    factor.name: self.deviations.get((quantity.name, factor.name), factor.deviation)
                    for factor in quantity.factors
                },
                levels,
            )
        return found

    def _estimate(self, column: int) -> Uncertain:
        return Uncertain(float(self.vector[column]), float(self.covariance[column, column]))


def solve(
    columns: Columns,
    design: FloatArray,
    response: FloatArray,
    weights: FloatArray,
    start: MixedFit | None = None,
    *,
    estimates_components: bool = True,
    rounds: int = 12,
) -> MixedFit:
    """Fit ``design @ vector`` to ``response``; rows count by ``weights``.

    ``start`` gives deviations and noise to begin with, which stay as they are unless
    ``estimates_components``.
    """
    mean, groups = columns.prior_mean(), columns.groups()
    deviations = _first_deviations(columns)
    if start is not None:
        deviations |= {key: start.deviations[key] for key in deviations if key in start.deviations}
    noise = 0.1 if start is None else start.noise
    used = np.flatnonzero(weights)
    rows, target, counts = design[used], response[used], weights[used]
    robust = np.ones(len(used))
    vector = mean
    covariance: FloatArray = np.zeros((0, 0))
    for _ in range(rounds):
        precision = _prior_precision(columns, deviations, groups)
        weighted = rows * (counts * robust / noise**2)[:, None]
        covariance = np.asarray(
            np.linalg.inv(rows.T @ weighted + np.diag(precision)), dtype=np.float64
        )
        vector = mean + covariance @ (weighted.T @ (target - rows @ mean))
        residual = target - rows @ vector
        robust = (_DEGREES_OF_FREEDOM + 1.0) / (_DEGREES_OF_FREEDOM + (residual / noise) ** 2)
        if not estimates_components:
            continue
        explained = np.einsum("ij,jk,ik->i", rows, covariance, rows)
        spread = float((counts * (robust * residual**2 + explained)).sum() / counts.sum())
        noise = max(_LEAST_NOISE, float(np.sqrt(spread)))
        for (quantity, factor), members in groups.items():
            first = _first_deviations(columns)[quantity, factor]
            moved = (vector[members] - mean[members]) ** 2
            total = float((moved + np.diag(covariance)[members]).sum())
            size = (total + _PRIOR_LEVELS * first**2) / (len(members) + _PRIOR_LEVELS)
            largest = _MOST_GROWTH * first
            deviations[quantity, factor] = min(max(_LEAST_DEVIATION, float(np.sqrt(size))), largest)
    return MixedFit(columns, vector, covariance, deviations, noise)


def _first_deviations(columns: Columns) -> dict[tuple[str, str], float]:
    return {
        (quantity.name, factor.name): factor.deviation
        for quantity in columns.quantities
        for factor in quantity.factors
    }


def _prior_precision(
    columns: Columns,
    deviations: Mapping[tuple[str, str], float],
    groups: Mapping[tuple[str, str], npt.NDArray[np.intp]],
) -> FloatArray:
    precision = np.zeros(len(columns.index))
    for quantity in columns.quantities:
        precision[columns.index[quantity.name, "", ""]] = quantity.deviation**-2
    for key, members in groups.items():
        precision[members] = deviations[key] ** -2
    return precision
