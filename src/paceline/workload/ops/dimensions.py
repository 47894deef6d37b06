"""Arithmetic, comparisons and checks of dimensions, which may be arrays."""

import math

import numpy as np

from paceline.errors import InputError
from paceline.workload.cost import Number, Shape


def elements(shape: Shape) -> Number:
    count: Number = 1
    for dimension in shape:
        count = count * dimension
    return count


def even_share(total: Number, parts: Number) -> Number:
    """A quotient, an integer if exact."""
    if isinstance(total, int) and isinstance(parts, int) and total % parts == 0:
        return total // parts
    return total / parts


def fixed_dimension(shape: Shape, axis: int) -> int:
    """A dimension that parameters depend on, which must not vary in a sweep."""
    if not -len(shape) <= axis < len(shape):
        raise InputError(f"the input {describe(shape)} has no dimension {axis}")
    size = shape[axis]
    if isinstance(size, np.ndarray):
        raise InputError("the number of weights depends on the sequence length")
    return int(size)


def differs(a: Number, b: Number) -> bool:
    return bool(np.any(np.not_equal(a, b)))


def exceeds(a: Number, b: Number) -> bool:
    return bool(np.any(np.greater(a, b)))


def same_shape(a: Shape, b: Shape) -> bool:
    return len(a) == len(b) and not any(differs(x, y) for x, y in zip(a, b, strict=True))


def describe(shape: Shape) -> str:
    """``3x224x224``; an array shows as its range."""
    return "x".join(_describe_dimension(size) for size in shape) or "scalar"


def require_rank(shape: Shape, least: int, what: str) -> None:
    if len(shape) < least:
        raise InputError(
            f"needs {what} (got {describe(shape)})",
            f"use an input of at least {least} dimension{'s' if least > 1 else ''}",
        )


def require_positive(**fields: int | float | tuple[int, ...]) -> None:
    for name, value in fields.items():
        values = value if isinstance(value, tuple) else (value,)
        if not values or any(not math.isfinite(v) or v <= 0 for v in values):
            raise InputError(f"{name} must be greater than 0 (got {value})")


def _describe_dimension(size: Number) -> str:
    if isinstance(size, np.ndarray):
        return f"[{size.min():.0f}..{size.max():.0f}]"
    return str(size)
