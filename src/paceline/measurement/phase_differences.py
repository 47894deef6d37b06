"""Phases of a step by difference: the time that each part adds to the one before it.

Works for any framework that can run parts of a step separately: forward, forward and backward, the
step without communication, the whole step, the collective alone.
"""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class PhasesByDifference:
    """Median seconds that each phase adds to a step; their sum is the step.

    ``exposed_seconds`` is exposed communication; ``collective_seconds`` is the time of the same
    messages alone, and ``hidden_seconds`` the part that overlaps with computation. If a framework
    cannot run a part, its phase is None and its time belongs to the next phase.
    """

    forward_seconds: float | None
    backward_seconds: float | None
    update_seconds: float | None
    exposed_seconds: float
    step_seconds: float
    collective_seconds: float | None

    @property
    def hidden_seconds(self) -> float | None:
        """Communication that overlaps with computation."""
        if self.collective_seconds is None:
            return None
        return max(0.0, self.collective_seconds - max(0.0, self.exposed_seconds))


def phases_by_difference(parts: Mapping[str, Sequence[float]]) -> PhasesByDifference | None:
    """Phases from the seconds of each part in each round; None without times of the whole step.

    A phase that is shorter than the noise of the others can be slightly negative.
    """
    medians = {name: statistics.median(values) for name, values in parts.items() if values}
    if "step" not in medians:
        return None
    reached = 0.0
    added: dict[str, float | None] = {}
    for name in ("forward", "forward_backward", "local_step"):
        added[name] = medians[name] - reached if name in medians else None
        reached = medians.get(name, reached)
    return PhasesByDifference(
        forward_seconds=added["forward"],
        backward_seconds=added["forward_backward"],
        update_seconds=added["local_step"],
        exposed_seconds=medians["step"] - reached,
        step_seconds=medians["step"],
        collective_seconds=medians.get("collective"),
    )
