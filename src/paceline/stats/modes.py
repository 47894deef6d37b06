"""Modes of launches: two groups of launches at different levels.

Launches often have two modes, such as two placements of processes or two clock states. A mean
over them describes neither, and its interval assumes one.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

SMALLEST_GAP = 0.03
"""Modes that are closer, as a fraction, are not reported: they hardly matter."""

CRITICAL = {5: 10.3, 6: 7.6, 7: 6.2, 8: 5.1, 10: 3.9, 12: 3.3, 15: 2.7, 20: 2.1, 30: 2.0}
"""Gap over the standard deviation within groups that 1 % of normal samples of a size exceed.

From 40,000 simulated samples; the value of the next smaller size applies. At least 2, so that a
long tail of many launches does not count as a mode.
"""


@dataclass(frozen=True)
class LaunchMode:
    """Launches at one level: their mean and number."""

    mean: float
    launches: int


def modes(values: Sequence[float]) -> tuple[LaunchMode, ...]:
    """The two modes of positive ``values`` in ascending order; empty if one mode describes them.

    The largest gap between neighbours on the logarithmic scale that leaves two or more launches
    on each side, in units of the standard deviation within the two groups.
    """
    if len(values) < min(CRITICAL) or min(values) <= 0.0:
        return ()
    ordered = sorted(values)
    logs = [math.log(value) for value in ordered]
    critical = CRITICAL[max(size for size in CRITICAL if size <= len(values))]
    gaps = [(logs[k] - logs[k - 1], k) for k in range(2, len(logs) - 1)]
    for gap, split in sorted(gaps, reverse=True):
        if gap < SMALLEST_GAP:
            break
        groups = logs[:split], logs[split:]
        within = math.sqrt(math.fsum(_squares(one) for one in groups) / (len(logs) - 2))
        if gap > critical * within:
            return tuple(
                LaunchMode(math.fsum(part) / len(part), len(part))
                for part in (ordered[:split], ordered[split:])
            )
    return ()


def _squares(values: Sequence[float]) -> float:
    mean = math.fsum(values) / len(values)
    return math.fsum((value - mean) ** 2 for value in values)
