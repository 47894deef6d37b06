"""Matches the tasks of several ranks that are one operation: collectives, send and receive.

In a collective, early ranks wait for the last and all end together. So the spread of ends is far
below the spread of starts, whatever the name of the operation.
"""

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from paceline.step.task import Phase, Step

TOGETHER = 0.3
"""Largest spread of ends over spread of starts of a collective."""
_CLOSE_SHARE = 0.05
_LATE_SHARE = 0.005
_SEND, _RECEIVE = "send", "recv"

Coordinates = Mapping[str, str]
"""Position of a rank in the process grid by axis, such as ``stage`` and ``dp_rank``."""
Members = tuple[int, ...]


@dataclass(frozen=True)
class _Occurrence:
    """One task of a step: its index, rank, start and end (seconds)."""

    task: int
    rank: int
    start: float
    end: float


def peer_groups(
    steps: Sequence[Step], coordinates: Mapping[int, Coordinates]
) -> list[list[Members]]:
    """For each step, the tasks (indices) that are one operation of several ranks.

    Tasks are matched by name, group and their order on each rank. First all ranks are tried as one
    group, then the ranks with equal coordinates on an axis (such as the same stage); the largest
    group whose tasks end together is used.
    """
    by_name = [_occurrences(step) for step in steps]
    names = dict.fromkeys(name for own in by_name for name in own)
    found: list[list[Members]] = [[] for _ in steps]
    length = statistics.fmean(step.seconds for step in steps) if steps else 0.0
    for phase, name, group in names:
        own = [step.get((phase, name, group), {}) for step in by_name]
        if _SEND in name:
            received = (phase, name.replace(_SEND, _RECEIVE), group)
            others = [step.get(received, {}) for step in by_name]
            groups = _pairs(own, others)
        elif _RECEIVE in name:
            continue
        else:
            groups = _collectives(own, coordinates, phase is Phase.COMMUNICATE, length)
        for step, members in zip(found, groups, strict=True):
            step.extend(members)
    return found


def _occurrences(step: Step) -> dict[tuple[Phase, str, str], dict[int, list[_Occurrence]]]:
    """Tasks by phase, name and group, then by rank in the order of their starts."""
    found: dict[tuple[Phase, str, str], dict[int, list[_Occurrence]]] = {}
    for index, (task, start) in enumerate(zip(step.tasks, step.starts, strict=True)):
        occurrence = _Occurrence(index, task.rank, start, start + task.seconds)
        found.setdefault((task.phase, task.name, task.group), {}).setdefault(task.rank, []).append(
            occurrence
        )
    for ranks in found.values():
        for own in ranks.values():
            own.sort(key=lambda occurrence: (occurrence.start, occurrence.end))
    return found


def _collectives(
    steps: Sequence[Mapping[int, list[_Occurrence]]],
    coordinates: Mapping[int, Coordinates],
    communicates: bool,
    step_seconds: float,
) -> list[list[Members]]:
    axes = dict.fromkeys(axis for own in coordinates.values() for axis in own)
    for axis in ("", *axes):
        matched = [_matched(step, coordinates, axis) for step in steps]
        groups = [group for step in matched for group in step]
        if groups and _end_together(groups, communicates, step_seconds):
            return [
                [tuple(occurrence.task for occurrence in group) for group in step]
                for step in matched
            ]
    return [[] for _ in steps]


def _matched(
    ranks: Mapping[int, list[_Occurrence]], coordinates: Mapping[int, Coordinates], axis: str
) -> list[tuple[_Occurrence, ...]]:
    """The k-th tasks of ranks with equal coordinates on an axis, if all have equally many tasks."""
    by_coordinate: dict[str, list[list[_Occurrence]]] = {}
    for rank, own in ranks.items():
        coordinate = coordinates.get(rank, {}).get(axis, "") if axis else ""
        by_coordinate.setdefault(coordinate, []).append(own)
    return [
        together
        for lists in by_coordinate.values()
        if len(lists) > 1 and len({len(own) for own in lists}) == 1
        for together in zip(*lists, strict=True)
    ]


def _end_together(
    groups: Iterable[tuple[_Occurrence, ...]], communicates: bool, step_seconds: float
) -> bool:
    """Whether ends are much closer than starts; for communication, also if ends are just close."""
    starts, ends, lengths = [], [], []
    for group in groups:
        starts.append(_spread(occurrence.start for occurrence in group))
        ends.append(_spread(occurrence.end for occurrence in group))
        lengths.append(min(occurrence.end - occurrence.start for occurrence in group))
    late, apart = statistics.median(starts), statistics.median(ends)
    # Waiting is visible only if the arrivals differ by more than the noise of the clocks.
    if late > _LATE_SHARE * step_seconds and apart < TOGETHER * late:
        return True
    return communicates and apart <= max(
        TOGETHER * late, _CLOSE_SHARE * statistics.median(lengths), 1e-9
    )


def _pairs(
    sends: Sequence[Mapping[int, list[_Occurrence]]],
    receives: Sequence[Mapping[int, list[_Occurrence]]],
) -> list[list[Members]]:
    """Match the sends of each rank with the receives of the rank with the nearest ends."""
    found: list[list[Members]] = []
    for own, others in zip(sends, receives, strict=True):
        taken: list[Members] = []
        free = dict(others)
        for rank, sent in own.items():
            gaps = {
                other: statistics.median(abs(a.end - b.end) for a, b in zip(sent, got, strict=True))
                for other, got in free.items()
                if other != rank and len(got) == len(sent)
            }
            if gaps:
                nearest = min(gaps, key=lambda other: gaps[other])
                got = free.pop(nearest)
                taken += [(a.task, b.task) for a, b in zip(sent, got, strict=True)]
        found.append(taken)
    return found


def _spread(moments: Iterable[float]) -> float:
    known = list(moments)
    return max(known) - min(known)
