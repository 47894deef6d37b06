"""CorrectionModel: fitted quantities as corrections of a step, with their errors."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from paceline.constants import number
from paceline.predictor.uncertainty.covariates import Covariates
from paceline.predictor.uncertainty.mixed_effects import (
    Hierarchy,
    Uncertain,
    logistic,
    prior_hierarchy,
)
from paceline.predictor.uncertainty.quantities import (
    BANDWIDTH,
    COMPUTING,
    QUANTITIES,
    UNHIDDEN,
    VARIATION,
)
from paceline.predictor.uncertainty.step_corrections import StepCorrections

KNOWN_WORK, COLD = "known_work", "cold"
"""Modes of prediction: the time of one device is measured, or nothing is."""

_AS_PREDICTED = Uncertain(0.0, 0.0)


@dataclass(frozen=True)
class ErrorRule:
    """Residual error of predictions when every effect is known.

    ``noise`` is the residual standard deviation of the logarithm; ``low`` and ``high`` are the
    5th and 95th percentile of log(measured / predicted throughput) in units of the predicted
    standard deviation, on held-out measurements.
    """

    noise: float = 0.1
    low: float = -1.645
    high: float = 1.645


@dataclass(frozen=True)
class CorrectionModel:
    """Fitted quantities, and residual errors by mode (`KNOWN_WORK`, `COLD`).

    ``devices``, ``frameworks`` and ``most_devices`` describe the measurements in ``fitted_on``: the
    validated domain. ``memory`` is log(measured / predicted peak).
    """

    hierarchies: Mapping[str, Hierarchy]
    rules: Mapping[str, ErrorRule] = field(default_factory=dict)
    fitted_on: str = ""
    devices: frozenset[str] = frozenset()
    frameworks: frozenset[str] = frozenset()
    most_devices: int = 1
    memory: Uncertain = _AS_PREDICTED

    def estimates(self, covariates: Covariates) -> dict[str, Uncertain]:
        """Every quantity for a job, on its own scale."""
        return {name: each.estimate(covariates) for name, each in self.hierarchies.items()}


@dataclass(frozen=True)
class FittedCorrections:
    """Corrections of one job: every quantity with its variance.

    ``rules`` are residual errors by mode, and by mode and ``kind`` of work. ``bandwidth_spread`` is
    the standard deviation of the log bandwidth of assumed links.
    """

    estimates: Mapping[str, Uncertain]
    rules: Mapping[str, ErrorRule]
    kind: str = ""
    bandwidth_spread: float = 0.0

    def rule(self, mode: str) -> ErrorRule:
        """The residual errors of this kind of work if known, else of all kinds."""
        # Kinds with few held-out rows have no rule of their own in corrections.toml.
        return self.rules.get(f"{mode}-{self.kind}") or self.rules.get(mode, ErrorRule())

    @property
    def values(self) -> dict[str, float]:
        """The quantities on their own scales."""
        return {name: estimate.value for name, estimate in self.estimates.items()}

    @property
    def corrections(self) -> StepCorrections:
        """The step's corrections."""
        return step_corrections(self.values)

    def moved(self, name: str, by: float) -> StepCorrections:
        """Corrections with one quantity increased by ``by`` on its own scale."""
        return step_corrections({**self.values, name: self.values[name] + by})

    def variance(self, name: str) -> float:
        """Variance of a quantity, including that of an assumed bandwidth."""
        # Default links vary among machines (hardware/usual_links.py), fitted ones do not.
        assumed = self.bandwidth_spread if name == BANDWIDTH.name else 0.0
        return self.estimates[name].variance + assumed**2


def corrections_for(
    model: CorrectionModel, covariates: Covariates, bandwidth_spread: float = 0.0
) -> FittedCorrections:
    """The corrections of a job."""
    return FittedCorrections(
        model.estimates(covariates), model.rules, covariates.kind, bandwidth_spread
    )


def step_corrections(values: Mapping[str, float], notes: tuple[str, ...] = ()) -> StepCorrections:
    """The corrections of a step for values of the quantities on their own scales."""
    return StepCorrections(
        compute_factor=math.exp(values[COMPUTING.name]),
        variation=math.exp(values[VARIATION.name]),
        unhidden_share=logistic(values[UNHIDDEN.name]),
        bandwidth_factor=math.exp(values[BANDWIDTH.name]),
        overhead_seconds=number("overheads.replicas.step_seconds"),
        notes=notes,
    )


def prior_model() -> CorrectionModel:
    """The model of priors, before any fit."""
    return CorrectionModel({each.name: prior_hierarchy(each) for each in QUANTITIES})
