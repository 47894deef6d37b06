"""A quantity as a constant plus effects of named circumstances, with its variance components."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from paceline.predictor.corrections.covariates import Covariates


class Uncertain(NamedTuple):
    """A number with the variance of what is not known about it."""

    value: float
    variance: float


@dataclass(frozen=True)
class Factor:
    """What a quantity may depend on: names of `Covariates` joined by ``+``.

    An ``optional`` factor that a job has no level of adds nothing; of any other a level exists
    and is not known, which widens the interval. ``deviation`` is the standard deviation among
    levels with which a fit begins. ``expected`` are effects that are thought likely before
    anything is measured, by the first name of a level.
    """

    name: str
    deviation: float
    optional: bool = False
    expected: Mapping[str, float] = field(default_factory=dict)

    def expected_effect(self, level: str) -> float:
        """What is thought of a level that nobody measured."""
        return self.expected.get(level.partition("/")[0], 0.0)


@dataclass(frozen=True)
class Quantity:
    """A quantity on the scale that is linear in effects, with the prior of its constant."""

    name: str
    prior: float
    deviation: float
    factors: tuple[Factor, ...] = ()


@dataclass(frozen=True)
class Hierarchy:
    """What was fitted of a quantity: constant, deviations among levels, and the levels seen."""

    quantity: Quantity
    constant: Uncertain
    deviations: Mapping[str, float]
    levels: Mapping[str, Mapping[str, Uncertain]] = field(default_factory=dict)

    def estimate(self, covariates: Covariates) -> Uncertain:
        """Constant plus the effects of the levels at hand; unknown ones widen the variance."""
        value, variance = self.constant
        for factor in self.quantity.factors:
            level = covariates.level(factor.name)
            known = self.levels.get(factor.name, {}).get(level)
            if known is not None:
                value += known.value
                variance += known.variance
            elif level or not factor.optional:
                value += factor.expected_effect(level)
                variance += self.deviations[factor.name] ** 2
        return Uncertain(value, variance)


def prior_hierarchy(quantity: Quantity) -> Hierarchy:
    """The quantity as it is before anything was measured."""
    return Hierarchy(
        quantity,
        Uncertain(quantity.prior, quantity.deviation**2),
        {factor.name: factor.deviation for factor in quantity.factors},
    )


def logistic(value: float) -> float:
    """The share that a logit stands for."""
    return 1.0 / (1.0 + math.exp(-value))
