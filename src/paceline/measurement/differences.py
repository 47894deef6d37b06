"""Phases of a step by difference: what each part adds to the time of the one before it.

Works for any framework, since it needs only that parts of a step can be run alone: forward,
forward and backward, the step without communication, the whole step, the collective by itself.
"""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class PhasesByDifference:
    """Median seconds that each phase adds to a step; together they are the step.

    ``exposed_seconds`` is what talking adds to the step; ``collective_seconds`` is what the same
    messages take with nothing else going on, and ``hidden_seconds`` the part of it that the step
    does not show. A framework that cannot run a part leaves its phase None, and its time in the
    next one.
    """

    forward_seconds: float | None
    backward_seconds: float | None
    update_seconds: float | None
    exposed_seconds: float
    step_seconds: float
    collective_seconds: float | None

    @property
    def hidden_seconds(self) -> float | None:
        """Communication that ran while the processor computed."""
        if self.collective_seconds is None:
            return None
        return max(0.0, self.collective_seconds - max(0.0, self.exposed_seconds))


def phases_by_difference(parts: Mapping[str, Sequence[float]]) -> PhasesByDifference | None:
    """Phases from the seconds of each part in each round; None if the step itself is missing.

    A phase can come out a little below zero where it is shorter than the noise of the others.
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
