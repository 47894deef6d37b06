"""Axes of a sweep as people write them: ``link=1gbit..100gbit:40``, ``nodes=2..64``."""

import numpy as np

from paceline.errors import InputError
from paceline.naming import look_up
from paceline.places import MOST_PROCESSES
from paceline.predictor.sweeps import AXES
from paceline.units import parse_bandwidth, parse_flops

_COUNTS = ("batch", "nodes")
_USUAL_POINTS = 40
MOST_POINTS = 10_000
_EVERY_COUNT_UP_TO = 64


def parse_axis(text: str) -> tuple[str, list[float]]:
    """Name and rising values of ``NAME=FIRST..LAST[:COUNT]`` or ``NAME=A,B,C``."""
    name, equals, range_text = text.partition("=")
    example = "write it like link=1gbit..100gbit:40, nodes=2..64 or batch=1,8,64"
    if not equals or not range_text:
        raise InputError(f"'{text}' is not an axis", example)
    look_up("axis", name, dict.fromkeys(AXES), f"one of {', '.join(AXES)}")
    if ".." not in range_text:
        return name, sorted({_number(name, part) for part in range_text.split(",")})
    ends, colon, count_text = range_text.partition(":")
    first, _, last = ends.partition("..")
    low, high = _number(name, first), _number(name, last)
    if low >= high:
        raise InputError(f"the axis '{text}' does not rise", example)
    if colon and not (count_text.isdecimal() and 2 <= int(count_text[:9]) <= MOST_POINTS):
        raise InputError(
            f"'{count_text}' is not a number of points from 2 to {MOST_POINTS:,}", example
        )
    return name, _spread(name, low, high, int(count_text) if colon else None)


def _number(name: str, text: str) -> float:
    if name in _COUNTS:
        if not text.strip().isdecimal() or not 1 <= int(text[:12]) <= MOST_PROCESSES:
            raise InputError(f"'{text}' is not a number of {name}", f"as in {name}=2..64")
        return float(int(text))
    return parse_flops(text) if name == "flops" else parse_bandwidth(text)


def _spread(name: str, low: float, high: float, count: int | None) -> list[float]:
    """Every whole number where there are few, else points at equal ratios."""
    if name in _COUNTS:
        if count is None and high - low < _EVERY_COUNT_UP_TO:
            return [float(n) for n in range(int(low), int(high) + 1)]
        points = np.round(np.geomspace(low, high, count or _USUAL_POINTS))
        return [float(n) for n in np.unique(points)]
    return [float(value) for value in np.geomspace(low, high, count or _USUAL_POINTS)]
