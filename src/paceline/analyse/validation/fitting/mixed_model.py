"""Constants and shrunken effects by maximum posterior: a mixed model with robust residuals."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from paceline.predictor.fitted.circumstances import Circumstances
from paceline.predictor.fitted.effects import Effects, Quantity

FloatArray = npt.NDArray[np.float64]
IndexArray = npt.NDArray[np.intp]
_LONGEST_MOVE = 1.0
_ROBUST = 2.0


@dataclass
class Parameters:
    """Every constant and every effect of some quantities, as one vector with its priors."""

    names: dict[tuple[str, str, str], int] = field(default_factory=dict)
    prior: list[float] = field(default_factory=list)
    deviation: list[float] = field(default_factory=list)

    @classmethod
    def of(
        cls, quantities: Sequence[Quantity], circumstances: Sequence[Circumstances]
    ) -> "Parameters":
        """Parameters for the levels that occur in ``circumstances``."""
        parameters = cls()
        for quantity in quantities:
            parameters._add((quantity.name, "", ""), quantity.prior, quantity.deviation)
            for factor in quantity.factors:
                for level in sorted({each.level(factor.name) for each in circumstances} - {""}):
                    key = (quantity.name, factor.name, level)
                    parameters._add(key, 0.0, factor.deviation)
        return parameters

    def members(self, quantity: Quantity, circumstances: Sequence[Circumstances]) -> FloatArray:
        """Matrix that takes the vector to the value of ``quantity`` for each circumstance."""
        matrix = np.zeros((len(circumstances), len(self.prior)))
        matrix[:, self.names[quantity.name, "", ""]] = 1.0
        for factor in quantity.factors:
            for row, each in enumerate(circumstances):
                column = self.names.get((quantity.name, factor.name, each.level(factor.name)))
                if column is not None:
                    matrix[row, column] = 1.0
        return matrix

    def effects(self, vector: FloatArray, digits: int = 4) -> Effects:
        """The vector by name, rounded; effects that round to nothing are left out."""
        constants: dict[str, float] = {}
        levels: dict[str, dict[str, dict[str, float]]] = {}
        for (quantity, factor, level), index in self.names.items():
            number = round(float(vector[index]), digits)
            if not factor:
                constants[quantity] = number
            elif number:
                levels.setdefault(quantity, {}).setdefault(factor, {})[level] = number
        return Effects(constants, levels)

    def _add(self, key: tuple[str, str, str], prior: float, deviation: float) -> None:
        self.names[key] = len(self.prior)
        self.prior.append(prior)
        self.deviation.append(deviation)


@dataclass(frozen=True)
class Fit:
    """The fitted vector, and how many free numbers it amounts to after shrinking."""

    vector: FloatArray
    effective_count: float


def fit(
    predicted_log: Callable[[FloatArray], tuple[FloatArray, FloatArray]],
    measured_log: FloatArray,
    weights: FloatArray,
    parameters: Parameters,
    *,
    noise: float,
    start: FloatArray | None = None,
    iterations: int = 8,
) -> Fit:
    """The vector of largest posterior by damped Gauss-Newton steps.

    ``predicted_log`` gives the predictions for a vector, and their slopes (row, parameter).
    Residuals of logarithms are taken as normal with standard deviation ``noise`` near zero and
    with heavier tails beyond, so that a few strange rows do not bend what the others say.
    ``weights`` of zero hold rows out.
    """
    prior = np.array(parameters.prior)
    precision = 1.0 / np.square(parameters.deviation)
    vector = prior.copy() if start is None else start.copy()
    effective = 0.0
    for _ in range(iterations):
        current, slopes = predicted_log(vector)
        residual = measured_log - current
        weight = weights / noise**2 / np.sqrt(1.0 + np.square(residual / (_ROBUST * noise)))
        information = slopes.T @ (slopes * weight[:, None])
        curvature = information + np.diag(precision)
        gradient = slopes.T @ (weight * residual) - precision * (vector - prior)
        moves = np.linalg.solve(curvature, gradient)
        vector = vector + np.clip(moves, -_LONGEST_MOVE, _LONGEST_MOVE)
        effective = float(np.trace(np.linalg.solve(curvature, information)))
    return Fit(vector, effective)
