"""The critical path: the chain of tasks that determines the length of a step."""

from paceline.step.task import Step


def critical_path(step: Step) -> list[int]:
    """Indices of the tasks on the critical path, first to last.

    Walks back from the task that ends last. The predecessor of a task is the one that ended last
    among its dependencies and the task before it on the same lane.
    """
    if not step.tasks:
        return []
    ends = step.ends
    lane_predecessor: list[int | None] = []
    last_on_lane: dict[tuple[int, str], int] = {}
    for index, task in enumerate(step.tasks):
        lane = (task.rank, task.resource)
        lane_predecessor.append(last_on_lane.get(lane))
        last_on_lane[lane] = index
    current = max(range(len(ends)), key=ends.__getitem__)
    path = [current]
    while step.starts[current] > 0:
        candidates = list(step.tasks[current].after)
        before = lane_predecessor[current]
        if before is not None:
            candidates.append(before)
        if not candidates:
            break
        current = max(candidates, key=ends.__getitem__)
        path.append(current)
    return path[::-1]
