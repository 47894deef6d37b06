"""Replay of steps with other durations: the gain from fixing an operation, rank or stage.

Dependencies are read off the clock: a task follows the one before it on its lane, whatever ended in
the gap before it began, and its share of the task that ran while it began. Operations of several
ranks begin when the last rank is there. What is left out is the host's own delay between tasks.
"""

import statistics
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from paceline.step.peers import Place, peer_groups
from paceline.step.task import Phase, Step

_SAME_MOMENT = 1e-4
"""Part of a step that two equal moments may seem apart."""


@dataclass(frozen=True)
class Operation:
    """One task, or one of several ranks together, on its way through a replay.

    ``seconds`` counts from when every rank was there. ``key`` says what it is compared with: the
    same operation of other ranks and steps. ``after`` are operations that have to end before,
    ``under`` pairs of an operation that has to have come so far (a share of it) before.
    """

    phase: Phase
    name: str
    ranks: tuple[int, ...]
    seconds: float
    key: tuple[Phase, str, int]
    after: tuple[int, ...]
    under: tuple[tuple[int, float], ...]


Chosen = Callable[[Operation], bool]


class Replay:
    """Steps as operations that wait for each other, to be played with other durations.

    ``places`` says where each rank stands (``stage``, ``dp_rank``).
    """

    def __init__(self, steps: Sequence[Step], places: Mapping[int, Place] | None = None) -> None:
        self.places = places or {}
        self.measured_seconds = statistics.fmean(_length(step) for step in steps)
        groups = peer_groups(steps, self.places)
        self.steps = [_operations(*pair) for pair in zip(steps, groups, strict=True)]
        by_key: dict[tuple[Phase, str, int], list[float]] = {}
        for step in self.steps:
            for one in step:
                by_key.setdefault(one.key, []).append(one.seconds)
        self._usual = {
            key: statistics.median(values)
            if key[0] is Phase.COMMUNICATE
            else statistics.fmean(values)
            for key, values in by_key.items()
        }

    def seconds(self, repaired: Chosen = lambda operation: False) -> float:
        """The mean step when the operations that are ``repaired`` take what is usual for them.

        Usual is the mean of the same operation over ranks and steps; of messages, which now and
        then take very long, the median.
        """
        return statistics.fmean(self._play(step, repaired) for step in self.steps)

    def _play(self, step: Sequence[Operation], repaired: Chosen) -> float:
        begins, ends = [0.0] * len(step), [0.0] * len(step)
        for index, one in enumerate(step):
            begin = max((ends[before] for before in one.after), default=0.0)
            for other, share in one.under:
                begin = max(begin, begins[other] + share * (ends[other] - begins[other]))
            begins[index] = begin
            ends[index] = begin + (self._usual[one.key] if repaired(one) else one.seconds)
        return max(ends, default=0.0)


def _length(step: Step) -> float:
    return step.seconds - min(step.starts, default=0.0)


def _operations(step: Step, groups: Sequence[tuple[int, ...]]) -> list[Operation]:
    """The operations of a step in the order in which their last rank begins."""
    members = [*groups, *((t,) for t in _alone(step, groups))]
    ends = step.ends
    begin = [max(step.starts[task] for task in own) for own in members]
    order = sorted(range(len(members)), key=lambda g: (begin[g], max(ends[t] for t in members[g])))
    number = {task: place for place, g in enumerate(order) for task in members[g]}
    after, under = _dependencies(step, ends)
    keys = _keys(step)
    found = []
    for place, g in enumerate(order):
        own = members[g]
        first = step.tasks[own[0]]
        found.append(
            Operation(
                first.phase,
                first.name,
                tuple(step.tasks[task].rank for task in own),
                max(0.0, max(ends[task] for task in own) - begin[g]),
                keys[own[0]],
                tuple({number[p] for task in own for p in after[task] if number[p] < place}),
                tuple(
                    (number[p], share)
                    for task in own
                    for p, share in under[task]
                    if number[p] < place
                ),
            )
        )
    return found


def _alone(step: Step, groups: Sequence[tuple[int, ...]]) -> list[int]:
    together = {task for group in groups for task in group}
    return [task for task in range(len(step.tasks)) if task not in together]


def _keys(step: Step) -> list[tuple[Phase, str, int]]:
    """Phase, name, and how many of that name the rank had before."""
    order = sorted(range(len(step.tasks)), key=lambda index: step.starts[index])
    count: dict[tuple[int, Phase, str], int] = {}
    keys = {}
    for index in order:
        task = step.tasks[index]
        own = (task.rank, task.phase, task.name)
        keys[index] = (task.phase, task.name, count.get(own, 0))
        count[own] = count.get(own, 0) + 1
    return [keys[index] for index in range(len(step.tasks))]


def _dependencies(
    step: Step, ends: Sequence[float]
) -> tuple[list[list[int]], list[list[tuple[int, float]]]]:
    """What each task waited for on its own rank."""
    after: list[list[int]] = [[] for _ in step.tasks]
    under: list[list[tuple[int, float]]] = [[] for _ in step.tasks]
    near = _SAME_MOMENT * step.seconds
    lanes: dict[int, dict[str, list[int]]] = {}
    for index, task in enumerate(step.tasks):
        lanes.setdefault(task.rank, {}).setdefault(task.resource, []).append(index)
    for rank in lanes.values():
        ordered = {
            lane: sorted(own, key=lambda index: (step.starts[index], ends[index]))
            for lane, own in rank.items()
        }
        finished = {lane: _sorted_ends(own, ends) for lane, own in ordered.items()}
        begun = {lane: [step.starts[index] for index in own] for lane, own in ordered.items()}
        for lane, own in ordered.items():
            before: int | None = None
            for index in own:
                start = step.starts[index]
                free = -1.0 if before is None else ends[before]
                if before is not None:
                    after[index].append(before)
                for other, (moments, tasks) in finished.items():
                    if other == lane:
                        continue
                    last = bisect_right(moments, start + near) - 1
                    if last >= 0 and moments[last] > free:
                        after[index].append(tasks[last])
                    if step.tasks[index].phase is Phase.COMMUNICATE:
                        running = bisect_right(begun[other], start - near) - 1
                        at = ordered[other][running] if running >= 0 else None
                        if at is not None and ends[at] > start + near:
                            passed = (start - step.starts[at]) / step.tasks[at].seconds
                            under[index].append((at, passed))
                before = index
    return after, under


def _sorted_ends(tasks: Sequence[int], ends: Sequence[float]) -> tuple[list[float], list[int]]:
    ordered = sorted(tasks, key=lambda index: ends[index])
    return [ends[index] for index in ordered], ordered
