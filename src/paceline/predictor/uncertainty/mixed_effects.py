"""Mixed-effects model of a quantity: a constant plus effects of factors."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from paceline.predictor.uncertainty.covariates import Covariates


class Uncertain(NamedTuple):
    """An estimate with its variance."""

    value: float
    variance: float


@dataclass(frozen=True)
class Factor:
    """A factor of a quantity: names of `Covariates` joined by ``+``.

    An ``optional`` factor without a level adds nothing; for other factors an unknown level widens
    the interval. ``deviation`` is the initial standard deviation among levels of a fit.
    ``expected`` are prior effects, by the first name of a level. The levels of a ``grouping``
    factor exist in published rows only: every job adds the variance among them.
    """

    name: str
    deviation: float
    optional: bool = False
    grouping: bool = False
    expected: Mapping[str, float] = field(default_factory=dict)

    def expected_effect(self, level: str) -> float:
        """The prior effect of an unmeasured level."""
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
    """A fitted quantity: constant, standard deviations among levels, and observed levels."""

    quantity: Quantity
    constant: Uncertain
    deviations: Mapping[str, float]
    levels: Mapping[str, Mapping[str, Uncertain]] = field(default_factory=dict)

    def estimate(self, covariates: Covariates) -> Uncertain:
        """Constant plus the effects of the job's levels; unknown ones increase the variance."""
        value, variance = self.constant
        for factor in self.quantity.factors:
            level = "" if factor.grouping else covariates.level(factor.name)
            known = self.levels.get(factor.name, {}).get(level)
            if known is not None:
                value += known.value
                variance += known.variance
            elif level or not factor.optional:
                value += factor.expected_effect(level)
                variance += self.deviations[factor.name] ** 2
        return Uncertain(value, variance)


def prior_hierarchy(quantity: Quantity) -> Hierarchy:
    """The quantity before any fit."""
    return Hierarchy(
        quantity,
        Uncertain(quantity.prior, quantity.deviation**2),
        {factor.name: factor.deviation for factor in quantity.factors},
    )


def logistic(value: float) -> float:
    """The inverse of the logit."""
    return 1.0 / (1.0 + math.exp(-value))
