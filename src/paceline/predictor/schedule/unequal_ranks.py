"""Schedules of ranks with different speeds (stragglers).

One representative rank is sufficient while replicas are equal. Otherwise the tasks of the
representative are scheduled for all replicas at once with arrays; gradient messages begin when the
last replica is ready.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from paceline.errors import InputError
from paceline.predictor.plan.plan import Plan
from paceline.predictor.schedule.task_schedule import NETWORK
from paceline.step import Origin, Phase, Step, Task

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class RankSchedule:
    """Starts and durations of each task (rows) on each replica (columns), seconds."""

    tasks: tuple[Task, ...]
    starts: FloatArray
    seconds_by_task: FloatArray

    @property
    def replicas(self) -> int:
        """Number of replicas."""
        return int(self.starts.shape[1])

    @property
    def seconds(self) -> float:
        """Duration of the step: end of the last replica."""
        return float(self.replica_seconds.max(initial=0.0))

    @property
    def replica_seconds(self) -> FloatArray:
        """End of each replica."""
        if not self.tasks:
            return np.zeros(self.replicas)
        return np.asarray((self.starts + self.seconds_by_task).max(axis=0))

    @property
    def computing_seconds(self) -> FloatArray:
        """Computing time of each replica."""
        computes = np.array([_computes(task) for task in self.tasks], dtype=bool)
        return np.asarray(self.seconds_by_task[computes].sum(axis=0))

    def step(self, replicas: Sequence[int]) -> Step:
        """A timeline of some replicas: replica ``replicas[i]`` becomes rank i.

        With pipelines each replica takes as many ranks as it has stages.
        """
        stages = 1 + max((task.rank for task in self.tasks), default=0)
        tasks: list[Task] = []
        starts: list[float] = []
        for position, replica in enumerate(replicas):
            base = len(tasks)
            for index, task in enumerate(self.tasks):
                tasks.append(
                    replace(
                        task,
                        seconds=float(self.seconds_by_task[index, replica]),
                        after=tuple(base + earlier for earlier in task.after),
                        rank=position * stages + task.rank,
                    )
                )
                starts.append(float(self.starts[index, replica]))
        return Step(tuple(tasks), tuple(starts), Origin.PREDICTED, "ranks")


def schedule_ranks(tasks: Sequence[Task], seconds_by_task: FloatArray) -> RankSchedule:
    """Schedule the same tasks on all replicas with individual durations.

    ``seconds_by_task`` has a row per task and a column per replica. A lane processes its tasks in
    order; network messages between replicas begin on all of them when the last one is ready.
    """
    durations = np.asarray(seconds_by_task, dtype=np.float64)
    if durations.ndim != 2 or durations.shape[0] != len(tasks):
        raise InputError(
            f"durations of shape {durations.shape} for {len(tasks)} tasks",
            "give a row per task and a column per replica",
        )
    starts = np.zeros_like(durations)
    ends = np.zeros_like(durations)
    nothing = np.zeros(durations.shape[1])
    free: dict[tuple[int, str], FloatArray] = {}
    for index, task in enumerate(tasks):
        lane = (task.rank, task.resource)
        start = free.get(lane, nothing)
        for earlier in task.after:
            start = np.maximum(start, ends[earlier])
        if task.phase is Phase.COMMUNICATE and task.resource == NETWORK:
            start = np.full_like(nothing, start.max())
        starts[index] = start
        ends[index] = start + durations[index]
        free[lane] = ends[index]
    return RankSchedule(tuple(tasks), starts, durations)


def with_slowdowns(step: Step, plan: Plan, slowdowns: Sequence[float]) -> RankSchedule:
    """The step of a plan with a slowdown per device.

    Factors are in the order of the layout (tensor ranks adjacent, then context, replicas, stages).
    Devices of a replica wait for each other at every layer, so the slowest of them counts.
    """
    factors = np.asarray(slowdowns, dtype=np.float64)
    if factors.shape != (plan.devices,):
        raise InputError(
            f"{factors.size} slowdowns for {plan.devices} devices", "give one factor per device"
        )
    if not (np.isfinite(factors).all() and (factors > 0).all()):
        raise InputError(
            "slowdowns must be positive numbers", "use 1 for a device at modelled speed"
        )
    by_stage = factors.reshape(plan.pp, plan.dp, plan.cp * plan.tp).max(axis=2)
    seconds = np.array([task.seconds for task in step.tasks])
    table = np.repeat(seconds[:, None], plan.dp, axis=1)
    for index, task in enumerate(step.tasks):
        if _computes(task):
            table[index] *= by_stage[task.rank]
    return schedule_ranks(step.tasks, table)


def _computes(task: Task) -> bool:
    return task.phase is not Phase.COMMUNICATE
