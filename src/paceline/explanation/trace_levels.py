"""Levels of a traced step: compute, exposed communication, idle; and the operations that take most.

As in Holistic Trace Analysis (Meta, 2022) each instant of a device belongs to computation, to
communication without computation, or to idle time.
"""

import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from paceline.step import Phase, Step
from paceline.step.breakdown import Interval, length, merge

KERNEL_GAP_SECONDS = 20e-6
"""Longest gap between two operations that is due to starting the second one: launching a kernel
takes 5 to 20 microseconds of the host."""
_HOST = (Phase.OTHER, Phase.INPUT)
TOP_OPERATIONS = 8
_BOTTLENECK = 0.1


@dataclass(frozen=True)
class TraceLevels:
    """Mean seconds per step and rank; they sum to ``step_seconds``.

    ``host_wait`` is idle while the host works or waits for input, ``kernel_gap`` the short gaps
    between operations, ``other`` the remaining idle time.
    """

    step_seconds: float
    compute: float
    exposed: float
    host_wait: float
    kernel_gap: float
    other: float

    @property
    def parts(self) -> Mapping[str, float]:
        """Seconds by level."""
        return {
            "compute": self.compute,
            "exposed communication": self.exposed,
            "idle: host wait": self.host_wait,
            "idle: kernel gaps": self.kernel_gap,
            "idle: other": self.other,
        }

    @property
    def verdict(self) -> str:
        """The largest loss, or that the step is healthy."""
        losses = {name: s for name, s in self.parts.items() if name != "compute"}
        largest = max(losses, key=lambda name: losses[name])
        share = losses[largest] / self.step_seconds if self.step_seconds > 0 else 0.0
        busy = self.compute / self.step_seconds if self.step_seconds > 0 else 0.0
        if share < _BOTTLENECK:
            return f"Healthy: {busy:.0%} of the step is compute."
        return f"Largest loss: {largest}, {share:.0%} of the step; {busy:.0%} is compute."


def trace_levels(steps: Sequence[Step]) -> TraceLevels | None:
    """Means over steps and ranks; None without a step."""
    found = [_of_rank(step, rank) for step in steps if step.seconds > 0 for rank in step.ranks]
    if not found:
        return None
    return TraceLevels(*(statistics.fmean(column) for column in zip(*found, strict=True)))


def _of_rank(step: Step, rank: int) -> tuple[float, float, float, float, float, float]:
    working: list[Interval] = []
    sending: list[Interval] = []
    hosting: list[Interval] = []
    for task, start in zip(step.tasks, step.starts, strict=True):
        if task.rank != rank or task.seconds <= 0 or task.phase is Phase.WAIT:
            continue
        lane = sending if task.phase is Phase.COMMUNICATE else working
        if task.phase in _HOST:
            lane = hosting
        lane.append((start, start + task.seconds))
    compute = merge(working)
    either = merge([*compute, *sending])
    covered = merge([*either, *hosting])
    host_wait = length(covered) - length(either)
    # The host may work in a part of a gap: what it does not cover is short, or unknown.
    uncovered = _gaps(covered, step.seconds)
    short = sum(end - start for start, end in uncovered if end - start <= KERNEL_GAP_SECONDS)
    other = max(0.0, length(uncovered) - short)
    communicating = length(either) - length(compute)
    return step.seconds, length(compute), communicating, host_wait, short, other


def _gaps(busy: Sequence[Interval], end: float) -> list[Interval]:
    found, reached = [], 0.0
    for start, stop in busy:
        if start > reached:
            found.append((reached, start))
        reached = max(reached, stop)
    if end > reached:
        found.append((reached, end))
    return found


def top_operations(steps: Sequence[Step]) -> list[tuple[str, str, float, float]]:
    """Name, phase, calls and seconds per step and rank of the operations that take most."""
    counts: dict[tuple[str, str], list[float]] = defaultdict(lambda: [0.0, 0.0])
    ranks = 0
    for step in steps:
        ranks += len(step.ranks)
        for task in step.tasks:
            if task.phase is not Phase.WAIT:
                own = counts[task.name, str(task.phase)]
                own[0], own[1] = own[0] + 1.0, own[1] + task.seconds
    largest = sorted(counts.items(), key=lambda item: -item[1][1])[:TOP_OPERATIONS]
    return [
        (name, phase, calls / max(ranks, 1), seconds / max(ranks, 1))
        for (name, phase), (calls, seconds) in largest
    ]
