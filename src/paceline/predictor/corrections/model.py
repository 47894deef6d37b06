"""CorrectionModel: the fitted quantities together, as corrections of a step and their errors."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from paceline.predictor.corrections.covariates import Covariates
from paceline.predictor.corrections.hierarchy import Hierarchy, Uncertain, logistic, prior_hierarchy
from paceline.predictor.corrections.quantities import (
    BANDWIDTH,
    COMPUTING,
    OVERHEAD,
    QUANTITIES,
    UNHIDDEN,
    VARIATION,
)
from paceline.predictor.step_corrections import StepCorrections

KNOWN_WORK, COLD = "known_work", "cold"
"""Whether the time of one device was measured, or nothing was."""

_MOST_UNHIDDEN = 0.95
_AS_PREDICTED = Uncertain(0.0, 0.0)


@dataclass(frozen=True)
class ErrorRule:
    """How far measured steps lie from predicted ones when every effect is known.

    ``noise`` is the standard deviation of the logarithm that remains; ``low`` and ``high`` are
    the 5th and 95th percentile of log(measured / predicted throughput) in units of the whole
    predicted deviation, on measurements that were left out.
    """

    noise: float = 0.1
    low: float = -1.645
    high: float = 1.645


@dataclass(frozen=True)
class CorrectionModel:
    """What was fitted of each quantity, and by mode (`KNOWN_WORK`, `COLD`) how far it errs.

    ``devices`` and ``frameworks`` are the names among the measurements it was ``fitted_on``, of
    which the largest job had ``most_devices``. ``memory`` is log(measured / predicted peak).
    """

    hierarchies: Mapping[str, Hierarchy]
    rules: Mapping[str, ErrorRule] = field(default_factory=dict)
    fitted_on: str = ""
    devices: frozenset[str] = frozenset()
    frameworks: frozenset[str] = frozenset()
    most_devices: int = 1
    memory: Uncertain = _AS_PREDICTED

    def estimates(self, covariates: Covariates) -> dict[str, Uncertain]:
        """Every quantity, on its own scale, for a job."""
        return {name: each.estimate(covariates) for name, each in self.hierarchies.items()}


@dataclass(frozen=True)
class Taught:
    """What published measurements say of one job: every quantity with its variance.

    ``rules`` are the errors that remain, by mode, and by mode and ``kind`` of work.
    ``bandwidth_spread`` is the standard deviation of the logarithm of a bandwidth that is
    assumed, not stated.
    """

    estimates: Mapping[str, Uncertain]
    rules: Mapping[str, ErrorRule]
    kind: str = ""
    bandwidth_spread: float = 0.0

    def rule(self, mode: str) -> ErrorRule:
        """The errors that remain of this kind of work where they are known, else of all."""
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
        """Corrections with one quantity higher by so much on its own scale."""
        return step_corrections({**self.values, name: self.values[name] + by})

    def variance(self, name: str) -> float:
        """Variance of a quantity, an assumed bandwidth included."""
        assumed = self.bandwidth_spread if name == BANDWIDTH.name else 0.0
        return self.estimates[name].variance + assumed**2


def taught_by(
    model: CorrectionModel, covariates: Covariates, bandwidth_spread: float = 0.0
) -> Taught:
    """What a model says of a job."""
    return Taught(model.estimates(covariates), model.rules, covariates.kind, bandwidth_spread)


def step_corrections(values: Mapping[str, float], notes: tuple[str, ...] = ()) -> StepCorrections:
    """The corrections of a step for values of the quantities on their own scales."""
    variation = math.exp(values[VARIATION.name])
    return StepCorrections(
        compute_factor=math.exp(values[COMPUTING.name]),
        variation=variation,
        unhidden_share=min(_MOST_UNHIDDEN, logistic(values[UNHIDDEN.name])),
        bandwidth_factor=math.exp(values[BANDWIDTH.name]),
        overhead_seconds=math.exp(values[OVERHEAD.name]),
        notes=notes,
    )


def prior_model() -> CorrectionModel:
    """The model before anything was measured."""
    return CorrectionModel({each.name: prior_hierarchy(each) for each in QUANTITIES})
