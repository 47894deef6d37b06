"""Passes through units whose weights are gathered first (FSDP, ZeRO stage 3).

A pass holds two units at a time: the one that computes and the next, whose gather starts when
the one before it begins to compute. Nothing is fetched before the pass begins, because FSDP's
gathers wait for what the device computed before, so the first gather of every pass is exposed.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Numbers = float | NDArray[np.float64]


@dataclass(frozen=True)
class GatheredUnit:
    """``count`` equal units in a row: seconds of work, of gathering and of scattering each."""

    work: Numbers
    gather: Numbers
    scatter: Numbers = 0.0
    count: int = 1


def gathered_pass_seconds(units: Sequence[GatheredUnit]) -> Numbers:
    """Seconds until a pass through ``units``, in its order, has computed and sent everything.

    The link serves the scatter of a unit before the gather of the unit after the next. So unit
    k + 1 begins max(work of k, scatter of k - 1 + gather of k + 1) after unit k.
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
