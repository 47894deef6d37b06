"""The scheduler: places tasks in issue order per resource."""

from collections.abc import Sequence

from paceline.errors import InputError
from paceline.step.task import Origin, Step, Task


class Timetable:
    """Places tasks one by one, each as early as its lane and its predecessors allow.

    A lane is one resource of one rank and works through its tasks in the order given. A task
    starts when its lane is free and every task of ``after`` has ended. Predecessors must be
    placed earlier, so one pass places everything: O(tasks + dependencies).
    """

    def __init__(self) -> None:
        self.tasks: list[Task] = []
        self._starts: list[float] = []
        self._ends: list[float] = []
        self._free: dict[tuple[int, str], float] = {}

    def add(self, task: Task) -> int:
        """Place a task and return its index."""
        lane = (task.rank, task.resource)
        start = self.start_on(lane, task.after)
        end = start + task.seconds
        self.tasks.append(task)
        self._starts.append(start)
        self._ends.append(end)
        self._free[lane] = end
        return len(self.tasks) - 1

    def occupy(self, lane: tuple[int, str], until: float) -> None:
        """Keep a lane busy with work that is not a task, until this time of the step (seconds)."""
        self._free[lane] = until

    def start_on(self, lane: tuple[int, str], after: tuple[int, ...]) -> float:
        """Earliest start of a further task of a lane after the tasks ``after``, seconds."""
        start = self._free.get(lane, 0.0)
        ends = self._ends
        for task in after:
            if ends[task] > start:
                start = ends[task]
        return start

    def free_at(self, lane: str, rank: int = 0) -> float:
        """End of the last task on a rank's lane, seconds."""
        return self._free.get((rank, lane), 0.0)

    def end_of(self, task: int) -> float:
        return self._ends[task]

    def build(self, label: str = "") -> Step:
        return Step(tuple(self.tasks), tuple(self._starts), Origin.PREDICTED, label)


def schedule(tasks: Sequence[Task], label: str = "") -> Step:
    """Place ``tasks`` with a `Timetable`; predecessors must come earlier in the list."""
    table = Timetable()
    for index, task in enumerate(tasks):
        for predecessor in task.after:
            if not 0 <= predecessor < index:
                raise InputError(
                    f"task {index} ('{task.name}') depends on task {predecessor}, a later one",
                    "list the tasks in issue order",
                )
        table.add(task)
    return table.build(label)
