"""Replay of steps with other durations: the gain from fixing an operation, rank or stage.

Dependencies are inferred from times: a task depends on the task before it on its lane, on tasks of
other lanes that ended in the gap before it started, and, for communication, on the elapsed fraction
of a task that was running at its start. Operations of several ranks start when the last rank
arrives. Host delays between tasks are not modelled.
"""

import statistics
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from paceline.step.peers import Coordinates, peer_groups
from paceline.step.task import Phase, Step

_SAME_MOMENT = 1e-4
"""Times within this fraction of a step are treated as equal."""


@dataclass(frozen=True)
class Operation:
    """One task, or one operation of several ranks, in a replay.

    ``seconds`` counts from the arrival of the last rank. ``key`` identifies the same operation of
    other ranks and steps. ``after`` are operations that must end first; ``under`` are pairs of an
    operation and the fraction of it that must have elapsed.
    """

    phase: Phase
    name: str
    ranks: tuple[int, ...]
    seconds: float
    key: tuple[Phase, str, int]
    after: tuple[int, ...]
    under: tuple[tuple[int, float], ...]


Selection = Callable[[Operation], bool]


class Replay:
    """Steps as operations with dependencies, to be replayed with other durations.

    ``coordinates`` are the positions of ranks in the process grid (``stage``, ``dp_rank``).
    """

    def __init__(
        self, steps: Sequence[Step], coordinates: Mapping[int, Coordinates] | None = None
    ) -> None:
        self.coordinates = coordinates or {}
        self.measured_seconds = statistics.fmean(_length(step) for step in steps)
        groups = peer_groups(steps, self.coordinates)
        self.steps = [_operations(*pair) for pair in zip(steps, groups, strict=True)]
        by_key: dict[tuple[Phase, str, int], list[float]] = {}
        for step in self.steps:
            for operation in step:
                by_key.setdefault(operation.key, []).append(operation.seconds)
        # Messages have rare, very long outliers, which would dominate a mean.
        self._usual = {
            key: statistics.median(values)
            if key[0] is Phase.COMMUNICATE
            else statistics.fmean(values)
            for key, values in by_key.items()
        }

    def seconds(self, fixed: Selection = lambda operation: False) -> float:
        """Mean step if the ``fixed`` operations take their usual time.

        The usual time is the mean of the same operation over ranks and steps; for communication,
        whose times have a long tail, the median.
        """
        return statistics.fmean(self._play(step, fixed) for step in self.steps)

    def _play(self, step: Sequence[Operation], fixed: Selection) -> float:
        begins, ends = [0.0] * len(step), [0.0] * len(step)
        for index, operation in enumerate(step):
            begin = max((ends[before] for before in operation.after), default=0.0)
            for other, share in operation.under:
                begin = max(begin, begins[other] + share * (ends[other] - begins[other]))
            begins[index] = begin
            ends[index] = begin + (
                self._usual[operation.key] if fixed(operation) else operation.seconds
            )
        return max(ends, default=0.0)


def _length(step: Step) -> float:
    return step.seconds - min(step.starts, default=0.0)


def _operations(step: Step, groups: Sequence[tuple[int, ...]]) -> list[Operation]:
    """Operations of a step in the order in which their last rank starts."""
    members = [*groups, *((t,) for t in _alone(step, groups))]
    ends = step.ends
    begin = [max(step.starts[task] for task in own) for own in members]
    order = sorted(range(len(members)), key=lambda g: (begin[g], max(ends[t] for t in members[g])))
    number = {task: position for position, g in enumerate(order) for task in members[g]}
    after, under = _dependencies(step, ends)
    keys = _keys(step)
    found = []
    for position, g in enumerate(order):
        own = members[g]
        first = step.tasks[own[0]]
        found.append(
            Operation(
                first.phase,
                first.name,
                tuple(step.tasks[task].rank for task in own),
                max(0.0, max(ends[task] for task in own) - begin[g]),
                keys[own[0]],
                tuple({number[p] for task in own for p in after[task] if number[p] < position}),
                tuple(
                    (number[p], share)
                    for task in own
                    for p, share in under[task]
                    if number[p] < position
                ),
            )
        )
    return found


def _alone(step: Step, groups: Sequence[tuple[int, ...]]) -> list[int]:
    together = {task for group in groups for task in group}
    return [task for task in range(len(step.tasks)) if task not in together]


def _keys(step: Step) -> list[tuple[Phase, str, int]]:
    """Phase, name and occurrence on its rank of each task."""
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
    """Tasks of the same rank on which each task depends, and elapsed fractions of running ones."""
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
                    # Only a task that ended after the lane became free can have delayed this one.
                    if last >= 0 and moments[last] > free:
                        after[index].append(tasks[last])
                    # A message is issued in the middle of a pass, such as a bucket in backward.
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
