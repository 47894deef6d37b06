"""Crossover points of data and model parallelism, by root finding."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

COUNTED = ("batch", "nodes")
"""Axes of whole numbers."""


@dataclass(frozen=True)
class Crossing:
    """A point of an axis where two step times are equal, in the axis's unit.

    On an integer axis it is the first number from which ``faster_beyond`` is faster.
    """

    value: float
    step_seconds: float
    faster_below: str
    faster_beyond: str


def crossings(
    axis: str,
    values: Sequence[float],
    names: tuple[str, str],
    seconds: tuple[Sequence[float], Sequence[float]],
    seconds_at: tuple[Callable[[float], float], Callable[[float], float]],
) -> list[Crossing]:
    """Every crossing between neighbouring ``values`` (increasing) of one axis.

    ``seconds`` are the step times of the two methods at the values, ``seconds_at`` anywhere on the
    axis. Each change of order is bracketed and solved by bisection on a logarithmic scale, or on
    integers for `COUNTED` axes.
    """

    def lead(value: float) -> float:
        return math.log(seconds_at[0](value)) - math.log(seconds_at[1](value))

    found = []
    leads = [math.log(a) - math.log(b) for a, b in zip(*seconds, strict=True)]
    for low, high, before, after in zip(values, values[1:], leads, leads[1:], strict=False):
        if before == 0 or before * after > 0:
            continue
        solve = _first_whole if axis in COUNTED else _equal
        value = solve(lead, low, high)
        below, beyond = names if before < 0 else names[::-1]
        found.append(Crossing(value, seconds_at[0](value), below, beyond))
    return found


def _equal(lead: Callable[[float], float], low: float, high: float) -> float:
    below, beyond = low, high
    sign = lead(below) > 0
    while beyond / below > 1.0 + 1e-10:
        middle = math.sqrt(below * beyond)
        if (lead(middle) > 0) == sign:
            below = middle
        else:
            beyond = middle
    return math.sqrt(below * beyond)


def _first_whole(lead: Callable[[float], float], low: float, high: float) -> float:
    below, beyond = math.ceil(low), math.floor(high)
    sign = lead(float(below)) > 0
    while beyond - below > 1:
        middle = (below + beyond) // 2
        if (lead(float(middle)) > 0) == sign:
            below = middle
        else:
            beyond = middle
    return float(beyond)
