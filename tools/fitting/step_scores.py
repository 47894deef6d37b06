"""Errors of steps that were held out of the fit of kernel constants."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from paceline.constants import number
from paceline.predictor.uncertainty.quantities import COMPUTING
from paceline.validation.hold_out import HoldOut, level_of
from paceline.validation.published_row import Configuration
from paceline.validation.refit.linear_problem import Problem
from paceline.validation.refit.linearise import Statement
from paceline.validation.refit.step_constants import step_priors, step_problem, unexplained

FloatArray = npt.NDArray[np.float64]
PROTOCOLS = (HoldOut.SOURCE, HoldOut.GENERATION, HoldOut.FRAMEWORK, HoldOut.MODEL)


@dataclass(frozen=True)
class StepErrors:
    """log(measured / predicted seconds) of every held-out step.

    ``alone`` nothing is corrected; ``corrected`` corrections of computing are fitted to the
    other rows, on top of the same constants.
    """

    alone: FloatArray
    corrected: FloatArray


class StepScores:
    """Errors of rows under hold-outs, with fixed constants and with refitted ones."""

    def __init__(self, rows: Sequence[Configuration], statements: Sequence[Statement]) -> None:
        self.rows, self.statements = rows, statements
        self._constants = step_problem(rows, statements)
        everything = self._constants.without(lambda row: False)
        self._all = {name: everything[name].constant.value for name in step_priors()}

    def of_fixed(self, protocol: HoldOut, values: Mapping[str, float]) -> StepErrors:
        """Errors with the same constants under every hold-out."""
        logarithms = {name: math.log(values[name]) for name in step_priors()}
        return self._errors(protocol, lambda level: logarithms, logarithms)

    def of_fitted(self, protocol: HoldOut) -> StepErrors:
        """Errors with constants fitted without the rows of the same level."""

        def fitted(level: str) -> dict[str, float]:
            found = self._constants.without(lambda row: level_of(row, protocol) == level)
            return {name: found[name].constant.value for name in step_priors()}

        return self._errors(protocol, fitted, self._all)

    def _errors(
        self,
        protocol: HoldOut,
        constants_without: Callable[[str], Mapping[str, float]],
        constants_of_all: Mapping[str, float],
    ) -> StepErrors:
        levels = np.array([level_of(row, protocol) for row in self.rows])
        alone, corrected = np.zeros(len(levels)), np.zeros(len(levels))
        everyone = Problem((COMPUTING,), self.rows, self._left(constants_of_all)).solved()
        for level in sorted(set(levels.tolist())):
            left = self._left(constants_without(level))
            problem = Problem((COMPUTING,), self.rows, left, everyone.hierarchies(), everyone.noise)
            found = problem.without(lambda row: level_of(row, protocol) == level)  # noqa: B023
            for place in np.flatnonzero(levels == level).tolist():
                own = left[place]
                effect = found[COMPUTING.name].estimate(problem.covariates[place]).value
                alone[place] = own.response
                corrected[place] = own.response - own.slopes[COMPUTING.name] * effect
        return StepErrors(alone, corrected)

    def _left(self, logarithms: Mapping[str, float]) -> list[Statement]:
        """The statements of steps about corrections, given the logarithms of constants."""
        return [
            Statement(
                each.id, {COMPUTING.name: each.slopes["program"]}, unexplained(each, logarithms)
            )
            for each in self.statements
        ]


def left_out_table(rows: Sequence[Configuration], statements: Sequence[Statement]) -> str:
    """Mean errors by hold-out, as lines of Markdown."""
    scores = StepScores(rows, statements)
    priors = {name: prior.value for name, prior in step_priors().items()}
    shipped = {name: number(f"kernels.{name}") for name in step_priors()}
    names = " | ".join(f"{name}, {how}" for how in ("alone", "corrected") for name in _COLUMNS)
    lines = [f"| left out | {names} |", "|---" + "|---:" * 2 * len(_COLUMNS) + "|"]
    for protocol in PROTOCOLS:
        errors = (
            scores.of_fixed(protocol, priors),
            scores.of_fixed(protocol, shipped),
            scores.of_fitted(protocol),
        )
        cells = [f"{mean_error(each.alone):.1%}" for each in errors]
        cells += [f"{mean_error(each.corrected):.1%}" for each in errors]
        lines.append(f"| {protocol} | {' | '.join(cells)} |")
    return "\n".join(lines)


_COLUMNS = ("prior values", "shipped", "fitted without")


def mean_error(logarithms: FloatArray) -> float:
    """Mean error of throughput, of log(measured / predicted seconds)."""
    return float(np.mean(np.abs(np.expm1(logarithms))))
