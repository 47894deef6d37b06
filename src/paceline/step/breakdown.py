"""Where the time of a step goes: seconds by phase, exposed and hidden communication."""

from dataclasses import dataclass

from paceline.step.task import Phase, Step

Interval = tuple[float, float]


@dataclass(frozen=True)
class Breakdown:
    """Seconds of one rank's step by phase; the exposed parts sum to ``step_seconds``.

    ``exposed`` assigns each instant to exactly one phase: computing phases first (forward,
    backward, update, copy, input, other), then communication, and ``wait`` if no task runs.
    ``busy`` is the time that the tasks of a phase occupy, overlapped or not;
    ``hidden_communication_seconds`` is communication overlapped with computation.
    """

    step_seconds: float
    exposed: dict[Phase, float]
    busy: dict[Phase, float]

    @property
    def exposed_communication_seconds(self) -> float:
        """Communication that lengthens the step."""
        return self.exposed.get(Phase.COMMUNICATE, 0.0)

    @property
    def hidden_communication_seconds(self) -> float:
        """Communication overlapped with computation."""
        return max(0.0, self.busy.get(Phase.COMMUNICATE, 0.0) - self.exposed_communication_seconds)


# Computation first: communication is exposed only while nothing computes.
_PRECEDENCE = (
    Phase.FORWARD,
    Phase.BACKWARD,
    Phase.UPDATE,
    Phase.COPY,
    Phase.INPUT,
    Phase.OTHER,
    Phase.COMMUNICATE,
)


def breakdown(step: Step, rank: int | None = None) -> Breakdown:
    """Break one rank's step down by phase; by default the rank that ends last."""
    if rank is None:
        rank = slowest_rank(step)
    return _breakdown(_intervals(step, {rank})[rank], step.seconds)


def breakdowns(step: Step) -> dict[int, Breakdown]:
    ranks, total = step.ranks, step.seconds
    found = _intervals(step, set(ranks))
    return {rank: _breakdown(found[rank], total) for rank in ranks}


def _intervals(step: Step, ranks: set[int]) -> dict[int, dict[Phase, list[Interval]]]:
    """Intervals of the tasks by rank and phase, in the order of tasks."""
    found: dict[int, dict[Phase, list[Interval]]] = {rank: {} for rank in ranks}
    for task, start in zip(step.tasks, step.starts, strict=True):
        if task.rank in found and task.seconds > 0:
            own = found[task.rank].setdefault(task.phase, [])
            own.append((start, start + task.seconds))
    return found


def _breakdown(intervals: dict[Phase, list[Interval]], total: float) -> Breakdown:
    exposed: dict[Phase, float] = {}
    busy: dict[Phase, float] = {}
    covered: list[Interval] = []
    for phase in _PRECEDENCE:
        own = merge(intervals.get(phase, []))
        if not own:
            continue
        busy[phase] = length(own)
        union = merge([*covered, *own])
        exposed[phase] = length(union) - length(covered)
        covered = union
    idle = total - length(covered)
    if idle > 1e-12 * max(total, 1.0):
        exposed[Phase.WAIT] = idle
    return Breakdown(total, exposed, busy)


def merge(intervals: list[Interval]) -> list[Interval]:
    """Union of intervals as disjoint intervals in order."""
    merged: list[Interval] = []
    for start, end in sorted(intervals):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        else:
            merged.append((start, end))
    return merged


def length(disjoint: list[Interval]) -> float:
    """Total length of disjoint intervals, seconds."""
    return sum(end - start for start, end in disjoint)


def slowest_rank(step: Step) -> int:
    ends: dict[int, float] = {}
    for task, end in zip(step.tasks, step.ends, strict=True):
        ends[task.rank] = max(ends.get(task.rank, 0.0), end)
    return max(ends, key=lambda rank: ends[rank], default=0)
