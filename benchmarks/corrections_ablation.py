"""Ablation of the corrections: errors of held-out rows with and without each part.

Uses the linear statements of the reference rows, so that a fit takes seconds; figures differ
slightly from those of the scoreboard, which calls `predict`. Prints a table for
docs/explanation/validation.md.

    .venv/bin/python benchmarks/corrections_ablation.py
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from paceline.predictor.uncertainty.mixed_effects import Quantity
from paceline.predictor.uncertainty.quantities import COMPUTING, SCALING
from paceline.validation.hold_out import PROTOCOLS, fitted_rows, level_of
from paceline.validation.refit.linear_problem import Problem
from paceline.validation.refit.linearise import Statement
from paceline.validation.refit.statements import shipped_statements

OWN_SHAPES = "nanotron"
"""Rows of layouts, which the scoreboard scores separately."""


class Trial:
    """Reference rows in one mode, fitted with some quantities and scored on held-out rows."""

    def __init__(self, paired: bool) -> None:
        rows = fitted_rows()
        self.statements = list(shipped_statements(paired).values())
        self.rows = [rows[each.id].configuration for each in self.statements]

    def cells(self, quantities: Sequence[Quantity], fixed: Quantity | None = None) -> list[str]:
        """Mean and median error (%) by protocol, then over all; ``fixed`` stays at its prior."""
        statements = [_without(each, fixed) for each in self.statements]
        full = Problem(quantities, self.rows, statements).solved()
        problem = Problem(quantities, self.rows, statements, full.hierarchies(), full.noise)
        cells, pooled = [], []
        for protocol in PROTOCOLS:
            levels = [level_of(row, protocol) for row in self.rows]
            errors = [
                error
                for level in sorted(set(levels) - {""})
                for error in _errors(problem, [own == level for own in levels])
            ]
            cells.append(_errors_text(errors))
            pooled += errors
        return [*cells, _errors_text(pooled)]


def _errors(problem: Problem, held_out: Sequence[bool]) -> list[float]:
    chosen = {id(row) for row, out in zip(problem.rows, held_out, strict=True) if out}
    fitted = problem.without(lambda row: id(row) in chosen)
    errors = []
    for row, statement, covariates, out in zip(
        problem.rows, problem.statements, problem.covariates, held_out, strict=True
    ):
        if out and row.family != OWN_SHAPES:
            answer = sum(
                slope * fitted[name].estimate(covariates).value
                for name, slope in statement.slopes.items()
                if name in fitted
            )
            errors.append(abs(float(np.expm1(statement.response - answer))))
    return errors


def _without(statement: Statement, quantity: Quantity | None) -> Statement:
    if quantity is None:
        return statement
    slope = statement.slopes[quantity.name]
    return replace(
        statement,
        slopes=dict(statement.slopes) | {quantity.name: 0.0},
        response=statement.response - slope * quantity.prior,
    )


def _errors_text(errors: Sequence[float]) -> str:
    return f"{100 * np.mean(errors):.1f} / {100 * np.median(errors):.1f}"


def _row(name: str, cells: Sequence[str]) -> None:
    print(f"| {name} | {' | '.join(cells)} |", flush=True)


def main() -> None:
    """Print one row for all parts, then one without each."""
    _row("errors, mean / median (%)", [*(each.value for each in PROTOCOLS), "all six"])
    print("|---" * (len(PROTOCOLS) + 2) + "|")
    paired = Trial(paired=True)
    _row("given the smallest run", paired.cells(SCALING))
    for quantity in SCALING:
        _row(f"without {quantity.name}", paired.cells(SCALING, fixed=quantity))
    alone = Trial(paired=False)
    _row("from the description alone", alone.cells([COMPUTING]))
    for factor in COMPUTING.factors:
        fewer = replace(COMPUTING, factors=tuple(x for x in COMPUTING.factors if x != factor))
        _row(f"without {factor.name}", alone.cells([fewer]))


if __name__ == "__main__":
    main()
