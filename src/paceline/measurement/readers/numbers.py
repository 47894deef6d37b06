"""Numbers as programs print them: thousands separators, exponents, and values that cannot be."""

import math

NUMBER = r"[-+]?(?:\d[\d,]*(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?"
"""Pattern of a number; `finite` turns the text it matched into a float."""

LONGEST_NUMBER = 40
SHORTEST_SECONDS = 1e-9
LONGEST_SECONDS = 1e9
LARGEST_COUNT = 10**12


def finite(text: str) -> float | None:
    """The number ``text`` spells; None when it is none, too long, infinite or not a number."""
    if len(text) > LONGEST_NUMBER:
        return None
    try:
        value = float(text.replace(",", ""))
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def positive(text: str) -> float | None:
    """A number above zero that is no rounding debris (a program's own garbage is often 1e-43)."""
    value = finite(text)
    return value if value is not None and 1e-12 < value < 1e18 else None


def duration(text: str, unit_seconds: float = 1.0) -> float | None:
    """Seconds of ``text`` in units of ``unit_seconds``; None for a time that no step can take."""
    value = finite(text)
    if value is None:
        return None
    seconds = value * unit_seconds
    return seconds if SHORTEST_SECONDS <= seconds <= LONGEST_SECONDS else None


def count(text: str) -> int | None:
    """A whole number from 0 to 10^12; None for anything else."""
    digits = text.replace(",", "").strip()
    if not digits.isascii() or not digits.isdigit() or len(digits) > 13:
        return None
    value = int(digits)
    return value if value <= LARGEST_COUNT else None
