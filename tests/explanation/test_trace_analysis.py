"""What repairing one thing is worth, in steps whose answer can be worked out by hand."""

import pytest

from paceline.explanation.trace_analysis import analyse_remedies
from paceline.step import Origin, Phase, Step, Task
from paceline.step.replay import Replay
from seen_steps import seen_step

MICRO_BATCHES = 4


def pipeline(slow_stage=None, stages=3, replicas=2, send=0.001):
    """Forward of all micro-batches, then backward, through stages; a reduce-scatter at the end."""
    tasks, starts = [], []

    def place(rank, name, phase, lane, begin, seconds):
        tasks.append(Task(name, phase, lane, seconds, rank=rank))
        starts.append(begin)
        return begin + seconds

    for replica in range(replicas):
        free = [0.0] * stages
        for direction, phase, seconds in (
            (1, Phase.FORWARD, 0.1),
            (-1, Phase.BACKWARD, 0.2),
        ):
            order = range(stages) if direction > 0 else range(stages - 1, -1, -1)
            for _ in range(MICRO_BATCHES):
                arrived = None
                for stage in order:
                    rank = stage * replicas + replica
                    if arrived is not None:
                        posted, sent = free[stage], arrived
                        name = f"{phase}-recv"
                        end = max(posted, sent) + send
                        place(rank, name, Phase.COMMUNICATE, name, posted, end - posted)
                        before = stage - direction
                        name = f"{phase}-send"
                        other = before * replicas + replica
                        place(other, name, Phase.COMMUNICATE, name, sent, end - sent)
                        free[stage], free[before] = end, max(free[before], end)
                    length = seconds * (2.0 if stage == slow_stage else 1.0)
                    name = f"{phase}-compute"
                    free[stage] = place(rank, name, phase, "compute", free[stage], length)
                    arrived = free[stage]
        for stage in range(stages):
            rank = stage * replicas + replica
            place(rank, "grads-reduce-scatter", Phase.COMMUNICATE, "network", free[stage], 0.05)
    return Step(tuple(tasks), tuple(starts), Origin.MEASURED)


def places(stages=3, replicas=2):
    return {
        stage * replicas + replica: {"stage": str(stage), "dp_rank": str(replica)}
        for stage in range(stages)
        for replica in range(replicas)
    }


def test_a_replay_of_recorded_durations_takes_the_recorded_time():
    for step in (pipeline(), pipeline(slow_stage=1), seen_step({}, {"forward": 0.05})):
        replay = Replay([step])
        assert replay.seconds() == pytest.approx(step.seconds, rel=0.01)


def test_the_slow_stage_is_the_cause_and_the_others_are_not():
    found = analyse_remedies([pipeline(slow_stage=2)] * 3, places(), common_clock=True)
    worth = {one.what: one.speed_up for one in found.remedies}
    assert found.cause.what == "stage 2"
    assert worth["stage 2"] > 1.2
    assert worth["stage 0"] < 1.01
    assert worth["stage 1"] < 1.01
    assert worth["dp_rank 0"] == pytest.approx(worth["dp_rank 1"], rel=0.01)
    assert worth["backward-compute"] > worth["forward-compute"] > 1.0
    assert found.slowdown > 1.1
    assert found.launching == pytest.approx(1.0, abs=0.01)


def test_equal_stages_have_no_cause():
    found = analyse_remedies([pipeline()] * 2, places(), common_clock=True)
    assert found.cause is None
    assert found.slowdown == pytest.approx(1.0, abs=0.005)


def test_a_straggler_of_data_parallel_ranks_is_found_though_clocks_differ():
    step = seen_step({}, {}, {}, {"backward": 0.12}, messages=((0.5, 1e6), (1.0, 1e6)), start=1e-3)
    shifted = [s + 50.0 * task.rank for task, s in zip(step.tasks, step.starts, strict=True)]
    apart = Step(step.tasks, tuple(shifted), Origin.MEASURED)
    found = analyse_remedies([apart] * 2, {}, common_clock=False)
    assert found.measured_seconds == pytest.approx(step.seconds, rel=0.01)
    assert found.cause.what == "rank 3"
    assert {one.what: one.speed_up for one in found.remedies}["rank 0"] <= 1.001


def test_an_overlapped_message_keeps_its_position_in_backward():
    """It leaves half-way: with backward twice as long it leaves twice as late."""
    step = seen_step({}, {}, messages=((0.5, 1e6),), start=0.01)
    replay = Replay([step])
    (message,) = [one for one in replay.steps[0] if one.phase is Phase.COMMUNICATE]
    assert sorted(message.ranks) == [0, 1]
    assert [share for _, share in message.under] == pytest.approx([0.5, 0.5])
    assert message.seconds == pytest.approx(0.01)


def test_one_rank_has_remedies_for_operations_only():
    found = analyse_remedies([seen_step({}), seen_step({"forward": 0.05})], {}, common_clock=False)
    assert {one.group for one in found.remedies} == {"operation"}


def test_no_tasks_give_no_remedies():
    assert analyse_remedies([], {}, common_clock=True) is None
