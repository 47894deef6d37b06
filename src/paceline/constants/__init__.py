"""Constants of the predictor: value, unit, source and status, and overrides."""

from paceline.constants.constant_registry import (
    Constant,
    ConstantStatus,
    built_from_constants,
    constant,
    number,
    numbers_of,
    overridden,
    shipped_constants,
)

__all__ = [
    "Constant",
    "ConstantStatus",
    "built_from_constants",
    "constant",
    "number",
    "numbers_of",
    "overridden",
    "shipped_constants",
]
