"""Constants and effects that were fitted to published measurements.

A quantity is a constant plus one effect per factor, each shrunk towards zero: where nothing is
known of a framework, device or machine, the constant stands alone.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from paceline.predictor.fitted.circumstances import Circumstances


@dataclass(frozen=True, slots=True)
class Factor:
    """What a quantity may depend on, and the standard deviation its effects are shrunk with."""

    name: str
    deviation: float


@dataclass(frozen=True, slots=True)
class Quantity:
    """A quantity on the scale that is linear in effects, with the prior of its constant."""

    name: str
    prior: float
    deviation: float
    factors: tuple[Factor, ...] = ()


@dataclass(frozen=True)
class Effects:
    """Values of the constants by quantity, and of effects by quantity, factor and level."""

    constants: Mapping[str, float]
    levels: Mapping[str, Mapping[str, Mapping[str, float]]] = field(default_factory=dict)

    def value(self, quantity: str, circumstances: Circumstances) -> float:
        """Constant plus the effects of the levels at hand; unknown levels have none."""
        total = self.constants[quantity]
        for factor, levels in self.levels.get(quantity, {}).items():
            total += levels.get(circumstances.level(factor), 0.0)
        return total

    def knows(self, quantity: str, factor: str, circumstances: Circumstances) -> bool:
        """Whether the level at hand was among those that were fitted."""
        return circumstances.level(factor) in self.levels.get(quantity, {}).get(factor, {})

    def combined(self, other: "Effects") -> "Effects":
        """The quantities of both."""
        return Effects({**self.constants, **other.constants}, {**self.levels, **other.levels})
