"""CorrectionModel: the fitted quantities together, as corrections of a step and their errors."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from paceline.predictor.corrections.covariates import Covariates
from paceline.predictor.corrections.hierarchy import Estimate, Hierarchy, logistic, prior_hierarchy
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

    ``devices`` and ``frameworks`` are the names among the measurements it was ``fitted_on``.
    """

    hierarchies: Mapping[str, Hierarchy]
    rules: Mapping[str, ErrorRule] = field(default_factory=dict)
    fitted_on: str = ""
    devices: frozenset[str] = frozenset()
    frameworks: frozenset[str] = frozenset()

    def estimates(self, covariates: Covariates) -> dict[str, Estimate]:
        """Every quantity, on its own scale, for a job."""
        return {name: each.estimate(covariates) for name, each in self.hierarchies.items()}

    def rule(self, mode: str) -> ErrorRule:
        """How far predictions of a mode err."""
        return self.rules.get(mode, ErrorRule())


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
