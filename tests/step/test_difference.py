import pytest
from builders import timed_step
from hypothesis import given
from hypothesis import strategies as st

from paceline.step import Origin, Phase, Step, Task
from paceline.step.difference import step_difference

LENGTHS = st.lists(st.floats(0.001, 1.0), min_size=1, max_size=5)


def in_a_row(*tasks):
    starts, clock = [], 0.0
    for task in tasks:
        starts.append(clock)
        clock += task.seconds
    return Step(tuple(tasks), tuple(starts), Origin.MEASURED)


def test_tasks_are_matched_by_name_and_order():
    before = in_a_row(*(Task("conv", Phase.FORWARD, "compute", s) for s in (0.1, 0.2)))
    after = in_a_row(*(Task("conv", Phase.FORWARD, "compute", s) for s in (0.1, 0.5)))
    found = step_difference(before, after)
    assert [change.seconds for change in found.tasks] == pytest.approx([0.3, 0.0])
    assert found.phases[0].seconds == pytest.approx(0.3)


def test_a_phase_known_by_layers_is_compared_with_one_known_as_a_whole():
    whole = in_a_row(Task("forward", Phase.FORWARD, "compute", 0.5))
    layers = in_a_row(*(Task(f"conv{n}", Phase.FORWARD, "compute", 0.1) for n in range(4)))
    (change,) = step_difference(layers, whole).tasks
    assert (change.name, change.before_tasks, change.after_tasks) == ("all other forward", 4, 1)
    assert change.seconds == pytest.approx(0.1)


def test_a_step_does_not_differ_from_itself():
    found = step_difference(timed_step(2, 0.05), timed_step(2, 0.05))
    assert all(change.seconds == 0 for change in (*found.tasks, *found.phases))


@given(before=LENGTHS, after=LENGTHS)
def test_changes_of_phases_sum_to_that_of_the_step(before, after):
    steps = [
        in_a_row(*(Task(f"task {n}", list(Phase)[n], "compute", s) for n, s in enumerate(lengths)))
        for lengths in (before, after)
    ]
    found = step_difference(*steps)
    change = found.after_seconds - found.before_seconds
    assert sum(one.seconds for one in found.phases) == pytest.approx(change, abs=1e-9)
