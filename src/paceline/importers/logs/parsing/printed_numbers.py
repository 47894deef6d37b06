"""Parse printed numbers: thousands separators, exponents, suffixes, implausible values."""

import math

NUMBER = r"[-+]?(?:\d[\d,]*(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?"
"""Pattern of a number; `finite` converts the matched text to a float."""

LONGEST_NUMBER = 40
SHORTEST_SECONDS = 1e-9
LONGEST_SECONDS = 1e9
LARGEST_COUNT = 10**12
COARSEST_DIGIT = 1e-3
"""Coarsest rounding assumed: programs print three decimals or more, minus trailing zeros."""


SUFFIXES = {"k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "B": 1e9, "T": 1e12}
"""Suffixes of abbreviated numbers; ``B`` is a billion."""


def finite(text: str) -> float | None:
    """The value of ``text`` (also 1.25k); None if it is not a number, too long or infinite."""
    if len(text) > LONGEST_NUMBER:
        return None
    digits = text.rstrip("".join(SUFFIXES))
    try:
        value = float(digits.replace(",", ""))
    except ValueError:
        return None
    if len(digits) < len(text):
        value *= SUFFIXES[text[-1]] if len(text) == len(digits) + 1 else math.nan
    return value if math.isfinite(value) else None


def positive(text: str) -> float | None:
    """A number between 1e-12 and 1e18; None otherwise (uninitialised values are often 1e-43)."""
    value = finite(text)
    return value if value is not None and 1e-12 < value < 1e18 else None


def duration(text: str, unit_seconds: float = 1.0) -> float | None:
    """Seconds of ``text`` in units of ``unit_seconds``; None for implausible times."""
    value = finite(text)
    if value is None:
        return None
    seconds = value * unit_seconds
    return seconds if SHORTEST_SECONDS <= seconds <= LONGEST_SECONDS else None


def count(text: str) -> int | None:
    """An integer from 0 to 10^12; None for anything else."""
    digits = text.replace(",", "").strip()
    if not digits.isascii() or not digits.isdigit() or len(digits) > 13:
        return None
    value = int(digits)
    return value if value <= LARGEST_COUNT else None


def half_unit(text: str) -> float:
    """Half a unit in the last digit of ``text``: its largest rounding error."""
    digits = text.rstrip("".join(SUFFIXES))
    return 0.5 * last_digit(digits) * SUFFIXES.get(text[len(digits) :], 1.0)


def last_digit(text: str) -> float:
    """One unit in the last digit of ``text``: 0.001 for 12.345."""
    digits, _, exponent = text.lower().partition("e")
    _, _, decimals = digits.partition(".")
    power = int(exponent) if exponent.lstrip("+-").isdigit() and len(exponent) < 5 else 0
    return float(10.0 ** (power - len(decimals)))
