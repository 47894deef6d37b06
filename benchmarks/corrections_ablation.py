"""What each family of effects buys: mean errors of held-out rows, with and without it.

Uses the linear form of every reference row, so that a fit takes seconds; figures differ a little
from those of the scoreboard, which calls `predict`. Prints the tables of
docs/explanation/constants.md.

    .venv/bin/python benchmarks/corrections_ablation.py
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from paceline.predictor.uncertainty.mixed_effects import Factor, Quantity
from paceline.predictor.uncertainty.quantities import (
    BANDWIDTH,
    COMPUTING,
    SCALING,
    UNHIDDEN,
    VARIATION,
)
from paceline.validation.hold_out import PROTOCOLS, fitted_rows, level_of, predicted_longer
from paceline.validation.refit.linear_problem import Problem
from paceline.validation.refit.linearise import Statement
from paceline.validation.refit.statements import shipped_statements

LAYOUTS = "nanotron"
"""Source of the layouts, which the scoreboard scores separately."""

NOT_SHIPPED = (
    (COMPUTING, Factor("program", 0.15)),
    (COMPUTING, Factor("machine+width", 0.1)),
    (COMPUTING, Factor("device+width", 0.1)),
    (UNHIDDEN, Factor("framework", 0.5)),
    (UNHIDDEN, Factor("program+reach", 0.7)),
    (BANDWIDTH, Factor("reach", 0.2)),
    (BANDWIDTH, Factor("link+intra", 0.2)),
    (VARIATION, Factor("program+link", 0.7)),
)
"""Families that are not shipped, with the deviations that a fit begins with."""


class Trial:
    """Reference rows in one mode, fitted with other effects and scored under every hold-out."""

    def __init__(self, paired: bool) -> None:
        rows = fitted_rows()
        self.paired = paired
        self.statements = list(shipped_statements(paired).values())
        self.rows = [rows[each.id].configuration for each in self.statements]

    def means(self, quantities: Sequence[Quantity], fixed: Quantity | None = None) -> list[float]:
        """Mean error (%) by protocol; ``fixed`` stays at its prior."""
        statements = [_without(each, fixed) for each in self.statements]
        full = Problem(quantities, self.rows, statements).solved()
        problem = Problem(quantities, self.rows, statements, full.hierarchies(), full.noise)
        means = []
        for protocol in PROTOCOLS:
            levels = np.array([level_of(row, protocol) for row in self.rows])
            errors = []
            for level in sorted(set(levels.tolist()) - {""}):
                # Cold predictions also use kernel constants fitted without the level.
                longer = (
                    np.zeros(len(levels))
                    if self.paired
                    else predicted_longer(self.rows, protocol, level)
                )
                errors += _errors(problem, levels == level, longer)
            means.append(100 * float(np.mean(errors)))
        return means

    def effects(self, quantity: str, factor: str) -> int:
        """Number of levels of a factor."""
        own = Factor(factor, 0.1)
        problem = Problem((Quantity(quantity, 0.0, 1.0, (own,)),), self.rows, self.statements)
        return len(problem.columns.index) - 1


def _errors(problem: Problem, held_out: np.ndarray, longer: np.ndarray) -> list[float]:
    chosen = {id(row) for row, out in zip(problem.rows, held_out, strict=True) if out}
    fitted = problem.without(lambda row: id(row) in chosen, longer)
    errors = []
    for number in np.flatnonzero(held_out).tolist():
        statement = problem.statements[number]
        if problem.rows[number].family != LAYOUTS:
            answer = longer[number] + sum(
                slope * fitted[name].estimate(problem.covariates[number]).value
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


def _changed(
    quantities: Sequence[Quantity], name: str, factor: Factor, *, add: bool
) -> list[Quantity]:
    """The quantities with or without a factor of one of them."""
    return [
        replace(
            each,
            factors=(
                *(own for own in each.factors if own.name != factor.name),
                *((factor,) if add else ()),
            ),
        )
        if each.name == name
        else each
        for each in quantities
    ]


def _row(name: str, count: object, cells: Sequence[str]) -> None:
    print(f"| {name} | {count} | {' | '.join(cells)} |", flush=True)


def _head(title: str) -> None:
    _row(title, "effects", [each.value for each in PROTOCOLS])
    print("|---" + "|---:" * (len(PROTOCOLS) + 1) + "|", flush=True)


def _gains(more: Sequence[float], fewer: Sequence[float]) -> list[str]:
    """Error without a family minus error with it, in points."""
    return [f"{a - b:+.1f}" for a, b in zip(more, fewer, strict=True)]


def main() -> None:
    """Print the gain of every shipped family, then that of families which are not shipped."""
    modes = ((Trial(paired=False), (COMPUTING,)), (Trial(paired=True), SCALING))
    names = {True: "smallest run given", False: "description only"}
    _head("shipped, points")
    full = {}
    for trial, quantities in modes:
        full[trial.paired] = trial.means(quantities)
        _row(names[trial.paired], "", [f"{mean:.1f} %" for mean in full[trial.paired]])
        for quantity in quantities:
            if trial.paired:
                cells = _gains(trial.means(quantities, fixed=quantity), full[True])
                _row(f"{quantity.name}: all", "", cells)
            for factor in (each for each in quantity.factors if not each.grouping):
                means = trial.means(_changed(quantities, quantity.name, factor, add=False))
                count = trial.effects(quantity.name, factor.name)
                _row(f"{quantity.name}: {factor.name}", count, _gains(means, full[trial.paired]))
    print()
    _head("not shipped, points")
    for quantity, factor in NOT_SHIPPED:
        trial, quantities = modes[quantity is not COMPUTING]
        means = trial.means(_changed(quantities, quantity.name, factor, add=True))
        count = trial.effects(quantity.name, factor.name)
        _row(f"{quantity.name}: {factor.name}", count, _gains(full[trial.paired], means))


if __name__ == "__main__":
    main()
