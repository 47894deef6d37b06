"""Kernel constants fitted to whole steps: sustained shares of burst rates and of memory bandwidth.

Published steps that are mostly computing are linear statements about the logarithms of constants
(`data/reference/step_priors.toml` has their priors) and about what each program and machine adds.
Both are solved for together, so that a program that is slow everywhere does not change the kernels.
`script/fit-constants --steps` prints the constants and writes the statements.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

from paceline.located_toml import shipped_toml
from paceline.predictor.kernels.efficiency import Efficiency, load_efficiency
from paceline.predictor.predict import model_step
from paceline.predictor.prediction_inputs import ModelledStep
from paceline.predictor.uncertainty.mixed_effects import Quantity, Uncertain
from paceline.predictor.uncertainty.quantities import COMPUTING
from paceline.validation.published_row import Configuration, PublishedRow
from paceline.validation.refit.linear_problem import Problem
from paceline.validation.refit.linearise import Statement, Step
from paceline.validation.refit.mixed_model import MixedFit
from paceline.validation.refit.refit_corrections import Say, steps_alone
from paceline.validation.row_step_model import row_seconds

PROGRAM = Quantity("program", 0.0, 0.03, COMPUTING.factors)
"""What programs and machines add to computing, as a logarithm; in the mean next to nothing."""

_MOVE = 0.05
"""How far the logarithm of a constant is moved to see what steps do."""
_LEAST_SHARE = 0.85
"""Least elasticity of the step in computation time for a step to be used."""
_ROUNDS = 2
_OF_ALL_STEPS = ("other", "update")
"""Fractions of memory bandwidth that are not of one kind of layer."""


@dataclass(frozen=True)
class StepPrior:
    """Prior of a constant; ``width`` is the standard deviation of its logarithm."""

    name: str
    value: float
    width: float
    source: str

    @property
    def quantity(self) -> Quantity:
        """The logarithm of the constant."""
        return Quantity(self.name, math.log(self.value), self.width)


@cache
def step_priors() -> dict[str, StepPrior]:
    """The prior of every constant that is fitted to whole steps, by its name in kernels.toml."""
    found = {}
    for group in shipped_toml("data", "reference", "step_priors.toml").values.values():
        for name in group["numbers"]:
            found[name] = StepPrior(name, group["value"], group["width"], group["source"])
    return found


def step_quantities() -> tuple[Quantity, ...]:
    """Quantities that a step constrains: its program, and the logarithm of every constant."""
    return (PROGRAM, *(prior.quantity for prior in step_priors().values()))


def linearised_steps(
    measurements: Sequence[PublishedRow], say: Say = lambda text: None
) -> tuple[list[Configuration], list[Statement]]:
    """Rows dominated by compute, linearised about the fitted values."""
    efficiency = load_efficiency()
    steps = [step for step in steps_alone(measurements) if _computing_share(step) >= _LEAST_SHARE]
    rows = [row for row, _, _ in steps]
    for number in range(_ROUNDS):
        say(f"{len(steps)} steps about constants, round {number + 1} of {_ROUNDS}")
        statements = [step_statement(step, efficiency) for step in steps]
        fit = fitted_step_constants(rows, statements)
        efficiency = efficiency.with_constants(values_of(fit))
    return rows, statements


def fitted_step_constants(
    rows: Sequence[Configuration], statements: Sequence[Statement]
) -> MixedFit:
    """Constants and effects of programs together, to all rows."""
    return Problem(step_quantities(), rows, statements).solved()


def step_problem(rows: Sequence[Configuration], statements: Sequence[Statement]) -> Problem:
    """The same, to be solved without some of the rows."""
    fit = fitted_step_constants(rows, statements)
    return Problem(step_quantities(), rows, statements, fit.hierarchies(), fit.noise)


def step_statement(step: Step, efficiency: Efficiency) -> Statement:
    """The statement of a measured step, linearised at the constants of ``efficiency``."""
    row, modelled, measured = step
    at_hand = efficiency.constants()
    now = _with(modelled, efficiency)
    seconds = row_seconds(now)
    slopes = {PROGRAM.name: _slope(_moved_seconds(now), seconds)}
    response = math.log(measured / seconds)
    for name in step_priors():
        slopes[name] = 0.0
        if _may_matter(name, modelled):
            moved = efficiency.with_constants({name: at_hand[name] * math.exp(_MOVE)})
            slopes[name] = _slope(row_seconds(_with(modelled, moved)), seconds)
            response += slopes[name] * math.log(at_hand[name])
    return Statement(row.id, slopes, response)


def values_of(fit: MixedFit) -> dict[str, float]:
    """The constants of a fit, in their own units."""
    return {name: math.exp(each.value) for name, each in logarithms_of(fit).items()}


def logarithms_of(fit: MixedFit) -> dict[str, Uncertain]:
    """The logarithms of the constants of a fit."""
    hierarchies = fit.hierarchies()
    return {name: hierarchies[name].constant for name in step_priors()}


def fitted_table(fit: MixedFit) -> str:
    """Constants as lines of Markdown: before, fitted, and the error of the logarithm each time."""
    lines = [
        f"| `{name}` | {prior.value:.3g} | {prior.width:.0%} | {math.exp(own.value):.3g} "
        f"| {math.sqrt(own.variance):.0%} |"
        for (name, own), prior in zip(
            logarithms_of(fit).items(), step_priors().values(), strict=True
        )
    ]
    head = "| constant | prior | its width | fitted | standard error |"
    return "\n".join([head, "|---|---:|---:|---:|---:|", *lines])


def unexplained(statement: Statement, logarithms: Mapping[str, float]) -> float:
    """log(measured / predicted) of an uncorrected step, with constants of these logarithms."""
    return statement.response - sum(
        statement.slopes[name] * value for name, value in logarithms.items()
    )


def _may_matter(name: str, step: ModelledStep) -> bool:
    """Whether a step has the device, or kinds of layer, that a constant is about."""
    group, _, about = name.partition(".")
    kinds = {part.profile.kind for part in step.parts.kinds}
    if group == "devices":
        return about.partition(".")[0] == step.job.cluster.device.name
    if group == "products":
        return ("attention" if about.startswith("attention") else "conv") in kinds
    return group != "memory" or about in _OF_ALL_STEPS or about.removesuffix("_backward") in kinds


def _computing_share(step: Step) -> float:
    _, modelled, _ = step
    return _slope(_moved_seconds(modelled), row_seconds(modelled))


def _with(step: ModelledStep, efficiency: Efficiency) -> ModelledStep:
    """The same step with other constants of kernels."""
    return model_step(replace(step.job, efficiency=efficiency))


def _moved_seconds(step: ModelledStep) -> float:
    """Seconds with all layer times multiplied by exp(`_MOVE`)."""
    return row_seconds(replace(step, job=replace(step.job, scale=math.exp(_MOVE))))


def _slope(moved_seconds: float, seconds: float) -> float:
    return math.log(moved_seconds / seconds) / _MOVE
