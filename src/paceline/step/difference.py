"""Difference of two steps: measured and predicted, before and after, two frameworks."""

from collections.abc import Sequence
from dataclasses import dataclass

from paceline.step.breakdown import breakdown, slowest_rank
from paceline.step.task import Phase, Step, Task


@dataclass(frozen=True)
class PhaseChange:
    """Exposed seconds of a phase in both steps; over all phases they sum to the steps."""

    phase: Phase
    before_seconds: float
    after_seconds: float

    @property
    def seconds(self) -> float:
        """Change of the step due to this phase."""
        return self.after_seconds - self.before_seconds


@dataclass(frozen=True)
class TaskChange:
    """A task in both steps, seconds; unmatched tasks of a phase are summed.

    ``before_tasks`` and ``after_tasks`` are the numbers of summed tasks.
    """

    phase: Phase
    name: str
    before_seconds: float
    after_seconds: float
    before_tasks: int = 1
    after_tasks: int = 1

    @property
    def seconds(self) -> float:
        return self.after_seconds - self.before_seconds


@dataclass(frozen=True)
class StepDifference:
    """The slowest rank of two steps: phases in their order, tasks with the largest change first."""

    before_seconds: float
    after_seconds: float
    phases: tuple[PhaseChange, ...]
    tasks: tuple[TaskChange, ...]


def step_difference(before: Step, after: Step) -> StepDifference:
    """Align the slowest ranks of two steps task by task: by phase, name and order.

    If one step has a phase by layer and the other as one task, the sums of the phase are compared:
    tasks are never matched by similar names.
    """
    exposed = [breakdown(step).exposed for step in (before, after)]
    phases = [phase for phase in Phase if phase in exposed[0] or phase in exposed[1]]
    tasks = [_keyed(step) for step in (before, after)]
    return StepDifference(
        before.seconds,
        after.seconds,
        tuple(PhaseChange(p, exposed[0].get(p, 0.0), exposed[1].get(p, 0.0)) for p in phases),
        tuple(sorted(_changes(*tasks), key=lambda change: -abs(change.seconds))),
    )


_Key = tuple[Phase, str, int]


def _keyed(step: Step) -> dict[_Key, Task]:
    """Tasks of the slowest rank by phase, name and occurrence."""
    rank = slowest_rank(step)
    found: dict[_Key, Task] = {}
    order = sorted(range(len(step.tasks)), key=lambda index: step.starts[index])
    count: dict[tuple[Phase, str], int] = {}
    for index in order:
        task = step.tasks[index]
        if task.rank == rank:
            occurrence = count.get((task.phase, task.name), 0)
            count[task.phase, task.name] = occurrence + 1
            found[task.phase, task.name, occurrence] = task
    return found


def _changes(before: dict[_Key, Task], after: dict[_Key, Task]) -> list[TaskChange]:
    common = before.keys() & after.keys()
    changes = [
        TaskChange(
            phase,
            name,
            before[phase, name, occurrence].seconds,
            after[phase, name, occurrence].seconds,
        )
        for phase, name, occurrence in common
    ]
    left = [[task for key, task in tasks.items() if key not in common] for tasks in (before, after)]
    for phase in Phase:
        lone, new = ([task for task in tasks if task.phase is phase] for tasks in left)
        if lone or new:
            changes.append(
                TaskChange(
                    phase,
                    _unmatched_label(phase, lone, new),
                    _sum(lone),
                    _sum(new),
                    len(lone),
                    len(new),
                )
            )
    return changes


def _unmatched_label(phase: Phase, before: Sequence[Task], after: Sequence[Task]) -> str:
    """Label of unmatched tasks: their name if it is the only one."""
    names = {task.name for task in (*before, *after)}
    return names.pop() if len(names) == 1 else f"all other {phase}"


def _sum(tasks: Sequence[Task]) -> float:
    return sum(task.seconds for task in tasks)
