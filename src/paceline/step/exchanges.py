"""Messages of a step by process group, such as data or tensor parallel."""

from collections.abc import Sequence
from dataclasses import dataclass

from paceline.step.breakdown import Interval, length, merge
from paceline.step.task import Phase, Step, Task


@dataclass(frozen=True)
class GroupExchange:
    """Messages of one group in a step, each figure the mean over the ranks that have any.

    ``busy_seconds`` is the time with a message under way, ``exposed_seconds`` the part of it in
    which the rank computes nothing.
    """

    group: str
    messages: float
    size_bytes: float
    busy_seconds: float
    exposed_seconds: float


def group_name(group: str) -> str:
    """What a program calls a group, without its members: ``mesh_tp`` of ``mesh_tp 0,1``."""
    name, _, members = group.rpartition(" ")
    return name if name and members.replace(",", "").isdigit() else group


def exchanges_by_group(step: Step) -> tuple[GroupExchange, ...]:
    """What each named group exchanges, what is exposed most first; empty where none is named."""
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
    return tuple(sorted(found, key=lambda one: -one.exposed_seconds))


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
