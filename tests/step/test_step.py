import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.errors import InputError
from paceline.step import Phase, Task, breakdown
from paceline.step.critical_path import critical_path
from paceline.step.schedule import schedule
from paceline.step.serialise import chrome_trace, step_from_json, step_to_json


def overlapped_step():
    """Two layers: the second layer's gradient travels while the first one's is computed."""
    return schedule(
        [
            Task("forward", Phase.FORWARD, "compute", 2.0),
            Task("backward 2", Phase.BACKWARD, "compute", 1.0, after=(0,)),
            Task("all-reduce 2", Phase.COMMUNICATE, "network", 3.0, after=(1,)),
            Task("backward 1", Phase.BACKWARD, "compute", 1.0, after=(1,)),
            Task("all-reduce 1", Phase.COMMUNICATE, "network", 0.5, after=(3,)),
            Task("update", Phase.UPDATE, "compute", 0.25, after=(2, 4)),
        ]
    )


def test_tasks_wait_for_their_lane_and_their_predecessors():
    step = overlapped_step()
    assert step.starts == (0.0, 2.0, 3.0, 3.0, 6.0, 6.5)
    assert step.seconds == 6.75


def test_breakdown_gives_each_moment_to_one_phase():
    parts = breakdown(overlapped_step())
    assert parts.exposed == {
        Phase.FORWARD: 2.0,
        Phase.BACKWARD: 2.0,
        Phase.UPDATE: 0.25,
        Phase.COMMUNICATE: 2.5,
    }
    assert parts.exposed_communication_seconds == 2.5
    assert parts.hidden_communication_seconds == 1.0


def test_critical_path_runs_through_the_network():
    step = overlapped_step()
    names = [step.tasks[index].name for index in critical_path(step)]
    assert names == ["forward", "backward 2", "all-reduce 2", "all-reduce 1", "update"]


def test_waiting_for_a_later_task_is_refused():
    with pytest.raises(InputError):
        schedule([Task("a", Phase.OTHER, "compute", 1.0, after=(1,))])


def test_a_chrome_trace_has_an_event_for_each_task_and_names_for_each_lane():
    events = json.loads(chrome_trace(overlapped_step()))["traceEvents"]
    complete = [event for event in events if event["ph"] == "X"]
    assert [event["ts"] for event in complete] == [0.0, 2e6, 3e6, 3e6, 6e6, 6.5e6]
    lanes = {event["args"]["name"] for event in events if event["name"] == "thread_name"}
    assert lanes == {"compute", "network"}


def test_a_step_survives_json():
    step = overlapped_step()
    assert step_from_json(json.loads(json.dumps(step_to_json(step)))) == step


@st.composite
def task_lists(draw):
    tasks = []
    for index in range(draw(st.integers(1, 12))):
        after = draw(st.sets(st.integers(0, index - 1), max_size=3)) if index else set()
        tasks.append(
            Task(
                str(index),
                draw(st.sampled_from([Phase.FORWARD, Phase.BACKWARD, Phase.COMMUNICATE])),
                draw(st.sampled_from(["compute", "network"])),
                draw(st.floats(0, 10)),
                tuple(sorted(after)),
                rank=draw(st.integers(0, 1)),
            )
        )
    return tasks


@given(task_lists())
def test_a_step_is_never_shorter_than_its_busiest_lane_nor_longer_than_everything(tasks):
    step = schedule(tasks)
    lanes = {}
    for task in tasks:
        lanes[task.rank, task.resource] = lanes.get((task.rank, task.resource), 0) + task.seconds
    assert max(lanes.values()) <= step.seconds + 1e-9
    assert step.seconds <= sum(task.seconds for task in tasks) + 1e-9


@given(task_lists())
def test_the_critical_path_spans_the_step_and_the_exposed_parts_sum_to_it(tasks):
    step = schedule(tasks)
    path = critical_path(step)
    assert sum(step.tasks[index].seconds for index in path) == pytest.approx(step.seconds)
    assert sum(breakdown(step).exposed.values()) == pytest.approx(step.seconds)
