"""Numbers that predictions depend on: what each is, where it comes from, and other values of it."""

from paceline.constants.registry import (
    built_from_constants,
    constant,
    number,
    numbers_of,
    overridden,
    shipped_constants,
)
from paceline.constants.value import Constant, ConstantStatus

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
