"""Reference rows as one linear system, solved without some of them in a moment."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from paceline.predictor.uncertainty.covariates import Covariates
from paceline.predictor.uncertainty.mixed_effects import Hierarchy, Quantity, Uncertain
from paceline.validation.published_row import Configuration
from paceline.validation.refit.linearise import Statement, design_of
from paceline.validation.refit.mixed_model import Columns, MixedFit, solve
from paceline.validation.row_step_model import RowCovariates, row_covariates

FloatArray = npt.NDArray[np.float64]
_ROUNDS = 5
"""Rounds of robust weights, which the full fit has nearly settled."""


class Problem:
    """Statements of rows about some quantities, with the deviations and noise of a full fit."""

    def __init__(
        self,
        quantities: Sequence[Quantity],
        rows: Sequence[Configuration],
        statements: Sequence[Statement],
        hierarchies: Mapping[str, Hierarchy] | None = None,
        noise: float = 0.1,
    ) -> None:
        self.rows = rows
        self.statements = statements
        self.covariates = [row_covariates(row) for row in rows]
        self.columns = Columns.of(quantities, self.covariates)
        self.design, self.response = design_of(self.columns, self.covariates, statements)
        self.weights = row_weights(self.covariates)
        self.start = None
        if hierarchies is not None:
            deviations = {
                (quantity.name, factor): deviation
                for quantity in quantities
                for factor, deviation in hierarchies[quantity.name].deviations.items()
            }
            nothing = np.zeros(0), np.zeros((0, 0))
            self.start = MixedFit(self.columns, *nothing, deviations, noise)

    def solved(self) -> MixedFit:
        """The fit to all rows, variance components included."""
        return solve(self.columns, self.design, self.response, self.weights)

    def solved_with_priors(self, noise: float) -> MixedFit:
        """The fit to all rows with the deviations that factors begin with."""
        nothing = np.zeros(0), np.zeros((0, 0))
        start = MixedFit(self.columns, *nothing, {}, noise)
        return solve(
            self.columns,
            self.design,
            self.response,
            self.weights,
            start,
            estimates_components=False,
        )

    def without(
        self, leaves_out: Callable[[Configuration], bool], longer: FloatArray | float = 0.0
    ) -> dict[str, Hierarchy]:
        """The quantities fitted to the rows that are not held out; other levels are unknown.

        ``longer`` is by how much the logarithm of each predicted step is longer than it was when
        statements were made.
        """
        kept = np.array([not leaves_out(row) for row in self.rows])
        fit = solve(
            self.columns,
            self.design,
            self.response - longer,
            self.weights * kept,
            self.start,
            estimates_components=False,
            rounds=_ROUNDS,
        )
        seen = [each for each, stays in zip(self.covariates, kept, strict=True) if stays]
        return {
            name: replace(hierarchy, levels=_of(hierarchy, seen))
            for name, hierarchy in fit.hierarchies().items()
        }


def row_weights(rows: Sequence[RowCovariates]) -> FloatArray:
    """Rows of one program on one device count together as the root of their number."""
    counts = Counter((row.program, row.device) for row in rows)
    return np.array([counts[row.program, row.device] ** -0.5 for row in rows])


def _of(hierarchy: Hierarchy, rows: Sequence[Covariates]) -> dict[str, dict[str, Uncertain]]:
    """The levels of a quantity that occur in some rows."""
    seen = {factor: {row.level(factor) for row in rows} for factor in hierarchy.levels}
    return {
        factor: {level: each for level, each in estimates.items() if level in seen[factor]}
        for factor, estimates in hierarchy.levels.items()
    }
