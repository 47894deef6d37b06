"""Passes through units whose weights are gathered before use (FSDP, ZeRO stage 3).

A pass holds two units at a time: the one in use and the next, whose all-gather starts when the
previous one begins to compute. Nothing is prefetched before the pass because FSDP's gathers wait
for the computing before them, so the first gather of every pass is exposed.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Numbers = float | NDArray[np.float64]


@dataclass(frozen=True)
class FsdpUnit:
    """``count`` equal consecutive units: seconds of work, all-gather and reduce-scatter each."""

    work: Numbers
    gather: Numbers
    scatter: Numbers = 0.0
    count: int = 1


def fsdp_pass_seconds(units: Sequence[FsdpUnit]) -> Numbers:
    """Seconds of a pass through ``units``, in order, until everything is computed and sent.

    The link serves the scatter of a unit before the gather of the unit after the next. So unit
    k + 1 begins max(work of k, scatter of k - 1 + gather of k + 1) after unit k, and of equal units
    only the first three need to be evaluated.
    """
    few = [unit for unit in units for _ in range(min(unit.count, 3))]
    begins = few[0].gather
    for position, unit in enumerate(few[:-1]):
        behind: Numbers = few[position - 1].scatter if position else 0.0
        begins = begins + np.maximum(unit.work, behind + few[position + 1].gather)
    for unit in units:
        if unit.count > 3:
            begins = begins + (unit.count - 3) * np.maximum(unit.work, unit.scatter + unit.gather)
    behind = few[-2].scatter if len(few) > 1 else 0.0
    return begins + np.maximum(few[-1].work, behind) + few[-1].scatter
