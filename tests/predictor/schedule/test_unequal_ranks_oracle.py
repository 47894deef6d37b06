"""Stragglers by hand: two replicas, a message that waits for the slower one."""

import numpy as np
import pytest

from paceline.errors import InputError
from paceline.predictor.plan.plan import Plan
from paceline.predictor.schedule.task_schedule import NETWORK
from paceline.predictor.schedule.unequal_ranks import schedule_ranks, with_slowdowns
from paceline.step import Origin, Phase, Step, Task

TASKS = (
    Task("forward", Phase.FORWARD, "compute", 1.0),
    Task("backward", Phase.BACKWARD, "compute", 2.0, after=(0,)),
    Task("all-reduce", Phase.COMMUNICATE, NETWORK, 0.5, after=(1,)),
    Task("update", Phase.UPDATE, "compute", 0.25, after=(2,)),
)
STEP = Step(TASKS, (0.0, 1.0, 3.0, 3.5), Origin.PREDICTED)


def test_the_message_starts_with_the_slowest():
    """At 1.0 and 1.5 times: backward ends at 3 and 4.5 s, both updates follow 5 s."""
    found = with_slowdowns(STEP, Plan(dp=2), [1.0, 1.5])
    assert found.starts[:, 0] == pytest.approx([0.0, 1.0, 4.5, 5.0])
    assert found.starts[:, 1] == pytest.approx([0.0, 1.5, 4.5, 5.0])
    assert found.replica_seconds == pytest.approx([5.25, 5.375])
    assert found.seconds == pytest.approx(5.375)
    assert found.computing_seconds == pytest.approx([3.25, 4.875])
    assert found.replicas == 2


def test_devices_of_a_replica_wait_for_each_other():
    """tp 2, dp 2: ranks 0, 1 are a replica; its slower device counts."""
    found = with_slowdowns(STEP, Plan(dp=2, tp=2), [1.0, 1.5, 1.0, 1.0])
    assert found.replica_seconds == pytest.approx([5.375, 5.25])


def test_stages_of_a_pipeline_have_their_own_factor():
    """pp 2, dp 2: factors of stage 0 for both replicas, then of stage 1."""
    tasks = (
        Task("a", Phase.FORWARD, "compute", 1.0, rank=0),
        Task("b", Phase.FORWARD, "compute", 1.0, rank=1, after=(0,)),
    )
    step = Step(tasks, (0.0, 1.0), Origin.PREDICTED)
    found = with_slowdowns(step, Plan(dp=2, pp=2, micro_batch=1), [1.0, 2.0, 3.0, 4.0])
    assert found.replica_seconds == pytest.approx([4.0, 6.0])


def test_timeline_of_some_replicas():
    found = with_slowdowns(STEP, Plan(dp=3), [1.0, 1.5, 2.0])
    step = found.step([2, 0])
    assert [task.rank for task in step.tasks] == [0] * 4 + [1] * 4
    assert step.tasks[5].after == (4,)
    assert step.tasks[0].seconds == 2.0
    assert step.tasks[4].seconds == 1.0


def test_timeline_of_replicas_of_two_stages():
    tasks = (
        Task("a", Phase.FORWARD, "compute", 1.0, rank=0),
        Task("b", Phase.FORWARD, "compute", 1.0, rank=1, after=(0,)),
    )
    found = schedule_ranks(tasks, np.ones((2, 2)))
    assert [task.rank for task in found.step([1, 0]).tasks] == [0, 1, 2, 3]


def test_factors_must_be_positive_and_one_per_device():
    for wrong in ([1.0], [1.0, 0.0], [1.0, np.nan], [1.0, -1.0]):
        with pytest.raises(InputError):
            with_slowdowns(STEP, Plan(dp=2), wrong)
    with pytest.raises(InputError, match="durations of shape"):
        schedule_ranks(TASKS, np.ones((3, 2)))
    assert schedule_ranks((), np.ones((0, 2))).seconds == 0.0
