"""Refits the corrections: linearise every reference row, and solve.

Scaling is learnt from rows with the measured baseline of their group, computing from rows alone.
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from paceline.errors import PacelineError
from paceline.predictor.uncertainty.correction_model import (
    COLD,
    KNOWN_WORK,
    CorrectionModel,
    ErrorRule,
    prior_model,
)
from paceline.predictor.uncertainty.covariates import Covariates
from paceline.predictor.uncertainty.mixed_effects import Quantity
from paceline.predictor.uncertainty.quantities import COMPUTING, SCALING
from paceline.validation.cases import Mode, cases
from paceline.validation.published_job import job_of
from paceline.validation.published_row import PublishedRow
from paceline.validation.refit.linear_problem import Problem
from paceline.validation.refit.linearise import Statement, Step, statement
from paceline.validation.refit.mixed_model import MixedFit
from paceline.validation.row_step_model import (
    baseline_evidence,
    measured_seconds,
    row_covariates,
    row_seconds,
    row_step,
    with_evidence,
)

Say = Callable[[str], None]
_ROUNDS = 3
_LIKELY_NOISE = 0.06
"""Noise of the fits that determine the point of linearisation. Their deviations are fixed at the
priors: free ones drive shares to 0 or 1, where a row has no gradient."""
_LONGEST_MOVE = 1.0


class _Rows:
    """Measured steps that constrain some quantities."""

    def __init__(
        self,
        quantities: Sequence[Quantity],
        steps: Sequence[Step],
    ) -> None:
        self.quantities = tuple(quantities)
        self.steps = steps
        self.configurations = [row for row, _, _ in steps]
        self.covariates = [row_covariates(row) for row in self.configurations]

    def statements(self, values: Sequence[Mapping[str, float]]) -> list[Statement]:
        """The rows, each linearised about its own ``values``."""
        return [
            statement(row.id, prepared, seconds, own, self.quantities)
            for (row, prepared, seconds), own in zip(self.steps, values, strict=True)
        ]

    def problem(self, statements: Sequence[Statement]) -> Problem:
        """The statements as a linear system."""
        return Problem(self.quantities, self.configurations, statements)


def refit(
    measurements: Sequence[PublishedRow], say: Say = lambda text: None
) -> tuple[CorrectionModel, list[Statement], list[Statement]]:
    """The model and the statements it was fitted to: with baselines, and alone."""
    say("preparing steps")
    paired, alone = (
        _Rows(SCALING, _pairs(measurements)),
        _Rows((COMPUTING,), steps_alone(measurements)),
    )
    model = prior_model()
    values = [_values(model, each) for each in paired.covariates]
    for number in range(_ROUNDS):
        say(f"{len(paired.steps)} rows with baselines, round {number + 1} of {_ROUNDS}")
        with_baseline = paired.statements(values)
        likely = paired.problem(with_baseline).solved_with_priors(_LIKELY_NOISE)
        values = [
            _moved(old, likely, each) for old, each in zip(values, paired.covariates, strict=True)
        ]
    fit = paired.problem(with_baseline).solved()
    hierarchies = {**model.hierarchies, **fit.hierarchies()}
    scaled = CorrectionModel(hierarchies)
    say(f"{len(alone.steps)} rows alone")
    lone = alone.statements([_values(scaled, each) for each in alone.covariates])
    computing = alone.problem(lone).solved()
    hierarchies |= computing.hierarchies()
    rows = [row for row, _, _ in (*paired.steps, *alone.steps)]
    effects = sum(len(levels) for h in hierarchies.values() for levels in h.levels.values())
    fitted = CorrectionModel(
        hierarchies,
        {KNOWN_WORK: ErrorRule(fit.noise), COLD: ErrorRule(computing.noise)},
        f"{len(paired.steps)} rows with baselines and {len(alone.steps)} alone of "
        f"data/reference; {len(hierarchies)} constants and {effects} effects",
        frozenset(row_covariates(row).device for row in rows),
        frozenset(row_covariates(row).framework for row in rows),
        max(row.devices for row in rows),
    )
    return fitted, with_baseline, lone


def _pairs(measurements: Sequence[PublishedRow]) -> list[Step]:
    found = []
    for case in cases(measurements, Mode.BASELINE):
        if case.baseline is None:
            continue
        row = case.measurement
        try:
            evidence = baseline_evidence(case.baseline, row.configuration)
            step = with_evidence(row_step(row.configuration), evidence)
            row_seconds(step)
        except PacelineError:
            continue
        found.append((row.configuration, step, measured_seconds(row)))
    return found


def steps_alone(measurements: Sequence[PublishedRow]) -> list[Step]:
    """Every row whose work is known from its description, nothing of it measured or corrected."""
    found = []
    for row in measurements:
        if row.failed or job_of(row.configuration).cold_obstacle:
            continue
        try:
            step = row_step(row.configuration)
            row_seconds(step)
        except PacelineError:
            continue
        found.append((row.configuration, step, measured_seconds(row)))
    return found


def _values(model: CorrectionModel, covariates: Covariates) -> dict[str, float]:
    """Every quantity of a job, computing as modelled."""
    values = {name: each.value for name, each in model.estimates(covariates).items()}
    return {**values, COMPUTING.name: 0.0}


def _moved(old: Mapping[str, float], fit: MixedFit, covariates: Covariates) -> dict[str, float]:
    """Values of the next round: those of the fit, no further away than a step is straight."""
    values = dict(old)
    for name, hierarchy in fit.hierarchies().items():
        wanted = hierarchy.estimate(covariates).value
        values[name] = float(np.clip(wanted, old[name] - _LONGEST_MOVE, old[name] + _LONGEST_MOVE))
    return values
