"""Alignment of the clocks of hosts by the collectives that their ranks share."""

import statistics

from paceline.step.task import Phase, Step


def align_clocks(step: Step) -> Step:
    """The step with each rank shifted so that shared messages end at the same time on all ranks.

    A collective ends on all ranks at the same time, whatever their clocks show. Ranks that share
    no message with the first rank are aligned through ranks that do, group by group; a rank without
    shared messages is not shifted.
    """
    ends = _message_ends(step)
    if len(ends) < 2:
        return step
    first = min(ends)
    shift, aligned = {first: 0.0}, [first]
    for known in aligned:
        for rank, own in ends.items():
            shared = own.keys() & ends[known].keys()
            if rank not in shift and shared:
                # Median: single messages may end late on a rank that was not scheduled.
                offset = statistics.median(ends[known][key] - own[key] for key in shared)
                shift[rank] = shift[known] + offset
                aligned.append(rank)
    starts = [
        start + shift.get(task.rank, 0.0)
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
    """End of each message by rank, group, name and occurrence."""
    found: dict[int, dict[tuple[str, str, int], float]] = {}
    count: dict[tuple[int, str, str], int] = {}
    order = sorted(range(len(step.tasks)), key=lambda index: step.starts[index])
    for index in order:
        task = step.tasks[index]
        if task.phase is Phase.COMMUNICATE:
            occurrence = count.get((task.rank, task.group, task.name), 0)
            count[task.rank, task.group, task.name] = occurrence + 1
            end = step.starts[index] + task.seconds
            found.setdefault(task.rank, {})[task.group, task.name, occurrence] = end
    return found
