"""The scheduler: places tasks in issue order per resource."""

from collections.abc import Sequence

from paceline.errors import InputError
from paceline.step.task import Origin, Step, Task


def schedule(tasks: Sequence[Task], label: str = "") -> Step:
    """Place ``tasks`` as early as their lane and their predecessors allow.

    A lane is one resource of one rank and works through its tasks in the order given. A task
    starts when its lane is free and every task of ``after`` has ended. Predecessors must come
    earlier in the list, so one pass places everything: O(tasks + dependencies).
    """
    lane_free: dict[tuple[int, str], float] = {}
    starts: list[float] = []
    ends: list[float] = []
    for index, task in enumerate(tasks):
        lane = (task.rank, task.resource)
        start = lane_free.get(lane, 0.0)
        for predecessor in task.after:
            if not 0 <= predecessor < index:
                raise InputError(
                    f"task {index} ('{task.name}') waits for {predecessor}, which is not before it",
                    "list the tasks in the order in which they are issued",
                )
            start = max(start, ends[predecessor])
        starts.append(start)
        end = start + task.seconds
        ends.append(end)
        lane_free[lane] = end
    return Step(tuple(tasks), tuple(starts), Origin.PREDICTED, label)
