"""Communication of a step by process group, such as data or tensor parallel."""

from collections.abc import Sequence
from dataclasses import dataclass

from paceline.step.breakdown import Interval, length, merge
from paceline.step.task import Phase, Step, Task


@dataclass(frozen=True)
class GroupExchange:
    """Messages of one group in a step: means over the ranks of the group.

    ``busy_seconds`` is the time with a message in flight, ``exposed_seconds`` the part of it
    that does not overlap with computation.
    """

    group: str
    messages: float
    size_bytes: float
    busy_seconds: float
    exposed_seconds: float


def group_name(group: str) -> str:
    """Name of a group without its members: ``mesh_tp`` for ``mesh_tp 0,1``."""
    name, _, members = group.rpartition(" ")
    return name if name and members.replace(",", "").isdigit() else group


def exchanges_by_group(step: Step) -> tuple[GroupExchange, ...]:
    """Communication of each named group, the most exposed first; empty if no group is named."""
    computing: dict[int, list[Interval]] = {}
    messages: dict[str, dict[int, list[tuple[Task, float]]]] = {}
    for task, start in zip(step.tasks, step.starts, strict=True):
        if task.phase is not Phase.COMMUNICATE:
            computing.setdefault(task.rank, []).append((start, start + task.seconds))
        elif task.group:
            ranks = messages.setdefault(group_name(task.group), {})
            ranks.setdefault(task.rank, []).append((task, start))
    computed = {rank: merge(own) for rank, own in computing.items()}
    found = [
        _mean(group, [_of_rank(own, computed.get(rank, [])) for rank, own in ranks.items()])
        for group, ranks in messages.items()
    ]
    return tuple(sorted(found, key=lambda exchange: -exchange.exposed_seconds))


def _of_rank(
    messages: Sequence[tuple[Task, float]], computing: Sequence[Interval]
) -> tuple[float, float, float, float]:
    """Number, bytes, busy and exposed seconds of one rank's messages."""
    busy = merge([(start, start + task.seconds) for task, start in messages])
    either = length(merge([*computing, *busy]))
    exposed = either - length(list(computing))
    return float(len(messages)), sum(task.size_bytes for task, _ in messages), length(busy), exposed


def _mean(group: str, ranks: Sequence[tuple[float, float, float, float]]) -> GroupExchange:
    return GroupExchange(group, *(sum(column) / len(ranks) for column in zip(*ranks, strict=True)))
