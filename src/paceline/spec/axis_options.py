"""Parser of sweep axes: ``link=1gbit..100gbit:40``, ``nodes=2..64``."""

import numpy as np

from paceline.errors import InputError
from paceline.naming import look_up
from paceline.predictor.sweep import AXES
from paceline.topology import MOST_PROCESSES
from paceline.units import parse_bandwidth, parse_flops

_COUNTS = ("batch", "nodes")
_USUAL_POINTS = 40
MOST_POINTS = 10_000
_EVERY_COUNT_UP_TO = 64


def parse_axis(text: str) -> tuple[str, list[float]]:
    """Name and increasing values of ``NAME=FIRST..LAST[:COUNT]`` or ``NAME=A,B,C``."""
    name, equals, range_text = text.partition("=")
    example = "use e.g. link=1gbit..100gbit:40, nodes=2..64 or batch=1,8,64"
    if not equals or not range_text:
        raise InputError(f"invalid axis '{text}'", example)
    look_up("axis", name, dict.fromkeys(AXES), f"one of {', '.join(AXES)}")
    if ".." not in range_text:
        return name, sorted({_number(name, part) for part in range_text.split(",")})
    ends, colon, count_text = range_text.partition(":")
    first, _, last = ends.partition("..")
    low, high = _number(name, first), _number(name, last)
    if low >= high:
        raise InputError(f"axis '{text}' does not increase", example)
    if colon and not (
        count_text.isascii() and count_text.isdecimal() and 2 <= int(count_text[:9]) <= MOST_POINTS
    ):
        raise InputError(
            f"the number of points must be from 2 to {MOST_POINTS:,} (got '{count_text}')", example
        )
    return name, _spread(name, low, high, int(count_text) if colon else None)


def _number(name: str, text: str) -> float:
    if name in _COUNTS:
        if (
            not (text.isascii() and text.strip().isdecimal())
            or not 1 <= int(text[:12]) <= MOST_PROCESSES
        ):
            raise InputError(
                f"{name} must be an integer from 1 to {MOST_PROCESSES:,} (got '{text}')",
                f"use e.g. {name}=2..64",
            )
        return float(int(text))
    return parse_flops(text) if name == "flops" else parse_bandwidth(text)


def _spread(name: str, low: float, high: float, count: int | None) -> list[float]:
    """All integers of a short range, else geometrically spaced points."""
    if name in _COUNTS:
        if count is None and high - low < _EVERY_COUNT_UP_TO:
            return [float(n) for n in range(int(low), int(high) + 1)]
        points = np.round(np.geomspace(low, high, count or _USUAL_POINTS))
        return [float(n) for n in np.unique(points)]
    return [float(value) for value in np.geomspace(low, high, count or _USUAL_POINTS)]
