"""Align the clocks of hosts by the messages that their ranks share."""

import statistics

from paceline.step.task import Phase, Step


def on_one_clock(step: Step) -> Step:
    """The step with each rank moved so that messages of all ranks end at the same moments.

    A collective ends on all ranks at the same time, whatever their clocks show. Ranks that share
    no message with the first are aligned through ranks that do, group by group; a rank without
    shared messages keeps its start.
    """
    ends = _message_ends(step)
    if len(ends) < 2:
        return step
    first = min(ends)
    moved, reached = {first: 0.0}, [first]
    for known in reached:
        for rank, own in ends.items():
            shared = own.keys() & ends[known].keys()
            if rank not in moved and shared:
                apart = statistics.median(ends[known][key] - own[key] for key in shared)
                moved[rank] = moved[known] + apart
                reached.append(rank)
    starts = [
        start + moved.get(task.rank, 0.0)
        for task, start in zip(step.tasks, step.starts, strict=True)
    ]
    begin = min(starts)
    return Step(
        step.tasks,
        tuple(start - begin for start in starts),
        step.origin,
        step.label,
        step.metadata,
    )


def _message_ends(step: Step) -> dict[int, dict[tuple[str, str, int], float]]:
    """When each message ended, by rank, group, name and how many of these came before."""
    found: dict[int, dict[tuple[str, str, int], float]] = {}
    count: dict[tuple[int, str, str], int] = {}
    order = sorted(range(len(step.tasks)), key=lambda index: step.starts[index])
    for index in order:
        task = step.tasks[index]
        if task.phase is Phase.COMMUNICATE:
            place = count.get((task.rank, task.group, task.name), 0)
            count[task.rank, task.group, task.name] = place + 1
            end = step.starts[index] + task.seconds
            found.setdefault(task.rank, {})[task.group, task.name, place] = end
    return found
