"""Steps whose critical path and states are known, because they were made up."""

import math
import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.step.critical_states import RankStep, cells_between, profile_states
from paceline.step.state_profile import Cell, StateProfile, ThreadState, total


def a_step(begun=0.0, **parts):
    """A step of one rank: (activity, seconds, running, runnable) in order; the rest is blocked."""
    intervals, marks, at, ran, late = [], [(0.0, 0.0, 0.0)], 0.0, 0.0, 0.0
    for activity, seconds, running, runnable in parts["phases"]:
        intervals.append((activity, at, at + seconds))
        at, ran, late = at + seconds, ran + running, late + runnable
        marks.append((at, ran, late))
    return RankStep(at, intervals, marks, begun, samples=parts.get("samples", ()))


def work(seconds, blocked=0.0, runnable=0.0):
    """Forward and backward that run ``seconds``, and wait meanwhile."""
    return [
        ("forward", seconds / 2 + blocked, seconds / 2, 0.0),
        ("backward", seconds / 2 + runnable, seconds / 2, runnable),
    ]


def ranks(early, late, network=0.01, count=20):
    """Steps of two ranks; the early one waits until the late one has arrived and sent."""
    arrivals = [sum(phase[1] for phase in own) for own in (early, late)]
    end = max(arrivals) + network
    steps = []
    for number in range(count):
        own = {
            rank: a_step(
                begun=100.0 + number * end,
                phases=[*phases, ("communicate", end - arrival, 0.0, 0.0)],
            )
            for rank, (phases, arrival) in enumerate(zip((early, late), arrivals, strict=True))
        }
        steps.append(own)
    return steps


def test_the_path_is_on_the_rank_that_arrives_last():
    profile = profile_states(ranks(work(0.1), work(0.1, blocked=0.03)))
    assert profile.step_seconds == pytest.approx(0.14)
    assert profile.critical[Cell("forward", ThreadState.BLOCKED)] == pytest.approx(0.03)
    assert total(profile.critical, ("communicate",)) == pytest.approx(0.01)
    assert [rank.last_share for rank in profile.ranks] == [0.0, 1.0]
    assert total(profile.ranks[0].cells, ("communicate",)) == pytest.approx(0.04)


def test_a_rank_that_arrives_last_without_a_core_did_not_work_longest():
    """Rank 1 waits 30 ms in forward; rank 0 arrives later still, because it had no core."""
    profile = profile_states(ranks(work(0.1, runnable=0.05), work(0.1, blocked=0.03)))
    assert total(profile.critical, ("backward",), ThreadState.RUNNABLE) == pytest.approx(0.05)
    assert [rank.last_share for rank in profile.ranks] == [0.0, 1.0]


def test_ranks_that_wait_for_handles_have_a_path_without_synchronisations():
    """Messages are in flight while the host of rank 0 is blocked; rank 1 waits before forward."""
    begin = [("host", 0.03, 0.0, 0.0)]
    early = replace(a_step(phases=[*work(0.1), ("host", 0.03, 0.0, 0.0)]), in_flight=[(0.1, 0.13)])
    late = a_step(phases=[*begin, *work(0.1)])
    profile = profile_states([{0: early, 1: late}] * 12)
    assert [rank.last_share for rank in profile.ranks] == [0.0, 1.0]
    assert profile.critical[Cell("host", ThreadState.BLOCKED)] == pytest.approx(0.03)
    assert total(profile.critical, ("communicate",)) == 0.0


def test_ranks_may_be_late_at_different_synchronisations():
    """Rank 0 is late at the first collective, rank 1 at the second: both delays count."""
    first = [
        ("forward", 0.05, 0.05, 0.0),
        ("collective", 0.01, 0.0, 0.0),
        ("backward", 0.02, 0.02, 0.0),
        ("communicate", 0.04, 0.0, 0.0),
    ]
    second = [
        ("forward", 0.02, 0.02, 0.0),
        ("collective", 0.04, 0.0, 0.0),
        ("backward", 0.05, 0.05, 0.0),
        ("communicate", 0.01, 0.0, 0.0),
    ]
    steps = [
        {rank: a_step(begun=0.12 * n, phases=p) for rank, p in enumerate((first, second))}
        for n in range(5)
    ]
    profile = profile_states(steps)
    assert profile.step_seconds == pytest.approx(0.12)
    assert total(profile.critical, ("forward", "backward"), ThreadState.RUNNING) == pytest.approx(
        0.1
    )
    assert total(profile.critical, ("communicate", "collective")) == pytest.approx(0.02)


def test_a_rank_that_wakes_late_after_a_collective_had_no_core():
    """It is still in the collective when the other rank goes on; then it arrives last."""
    quick = [("collective", 0.01, 0.0, 0.0), ("backward", 0.05, 0.05, 0.0)]
    woken = [("collective", 0.03, 0.0, 0.02), ("backward", 0.05, 0.05, 0.0)]
    end = 0.09
    steps = [
        {
            0: a_step(begun=end * n, phases=[*quick, ("communicate", 0.03, 0.0, 0.0)]),
            1: a_step(begun=end * n, phases=[*woken, ("communicate", 0.01, 0.0, 0.0)]),
        }
        for n in range(5)
    ]
    profile = profile_states(steps)
    assert profile.step_seconds == pytest.approx(end)
    assert total(profile.critical, (), ThreadState.RUNNABLE) > 0.01


def test_stalls_have_their_length_and_period():
    steps = []
    for number in range(40):
        host = 0.2 if number % 8 == 7 else 0.001
        steps.append({0: a_step(phases=[*work(0.05), ("checkpoint", host, host, 0.0)])})
    profile = profile_states(steps)
    assert profile.stalls.kind == "checkpoint"
    assert (profile.stalls.count, profile.stalls.every) == (5, 8)
    assert profile.stalls.each_seconds == pytest.approx(0.199)
    assert profile.critical[Cell("stall", ThreadState.RUNNING)] == pytest.approx(0.199 * 5 / 40)


def test_two_stalls_in_a_row_have_no_period():
    steps = []
    for number in range(40):
        blocked = 0.2 if number in (20, 21) else 0.0
        steps.append({0: a_step(phases=[("host", blocked + 0.01, 0.01, 0.0), *work(0.1)])})
    stalls = profile_states(steps).stalls
    assert stalls.count == 2
    assert stalls.seconds_per_step == pytest.approx(0.2 * 2 / 40)


def test_varying_computation_is_no_stall():
    """Threads without a core spin in some steps: that is no work of the host."""
    steps = [{0: a_step(phases=work(0.3 if n % 9 == 0 else 0.1))} for n in range(40)]
    assert profile_states(steps).stalls is None


def test_a_growing_step_drifts():
    steps = [{0: a_step(phases=work(0.05, blocked=0.001 * n))} for n in range(60)]
    profile = profile_states(steps)
    assert profile.drift.cell == "forward/blocked"
    assert profile.drift.first_seconds == pytest.approx(0.05, rel=0.02)
    assert profile.drift.seconds == pytest.approx(0.0295, rel=0.05)
    assert total(profile.critical, ("forward",), ThreadState.BLOCKED) == pytest.approx(
        0.0, abs=1e-3
    )
    steady = [{0: a_step(phases=work(0.05, blocked=0.01))} for _ in range(60)]
    assert profile_states(steady).drift is None


def test_growth_of_several_phases_is_one_drift():
    steps = [{0: a_step(phases=work(0.1 + 0.002 * number))} for number in range(40)]
    profile = profile_states(steps)
    assert profile.drift.seconds == pytest.approx(0.002 * 39 / 2)
    assert profile.drift.last_seconds - profile.drift.first_seconds == pytest.approx(0.002 * 39)


def test_host_work_that_loads_input_is_input():
    """The share of samples in a generator, in which each step counts once."""
    phases = [("host", 0.04, 0.0, 0.0), ("forward", 0.1, 0.1, 0.0)]

    def sampled(number):
        rows = [(0.01, True, "train.py:3 (batches)", True)]
        if number % 4 == 0:
            rows = [(0.02, True, "train.py:9 (log)", False)] * 3
        return tuple(rows)

    steps = [{0: a_step(phases=phases, samples=sampled(number))} for number in range(20)]
    profile = profile_states(steps)
    assert total(profile.critical, ("input",)) == pytest.approx(0.03)
    assert total(profile.critical, ("host",)) == pytest.approx(0.01)
    assert profile.lines["input/blocked"] == "train.py:3 (batches)"


def test_without_marks_the_state_is_unknown():
    step = RankStep(0.1, [("forward", 0.0, 0.1)])
    profile = profile_states([{0: step}])
    assert profile.critical == {Cell("forward", ThreadState.UNKNOWN): 0.1}
    assert not profile.knows_states


def test_a_profile_survives_json():
    profile = profile_states(ranks(work(0.1), work(0.1, blocked=0.03), count=24))
    assert StateProfile.from_json(profile.to_json()) == profile


amounts = st.floats(0.0, 0.05)


@given(
    st.lists(st.tuples(amounts, amounts, amounts), min_size=2, max_size=4),
    st.integers(0, 2**31),
)
def test_cells_sum_to_the_elapsed_time(parts, seed):
    """Whatever the ranks do between their collectives, the path covers the time exactly."""
    chance = random.Random(seed)
    clock = [0.0] * len(parts)
    steps = []
    for _ in range(6):
        begun = list(clock)
        phases = [[] for _ in parts]
        for _ in range(2):
            for rank, (running, runnable, blocked) in enumerate(parts):
                share = chance.random()
                seconds = share * (running + runnable + blocked)
                phases[rank].append(("forward", seconds, share * running, share * runnable))
                clock[rank] += seconds
            end = max(clock) + 0.002
            for rank in range(len(parts)):
                phases[rank].append(("collective", end - clock[rank], 0.0, 0.0))
            clock = [end] * len(parts)
        steps.append({r: a_step(begun=begun[r], phases=p) for r, p in enumerate(phases)})
    profile = profile_states(steps)
    assert profile.step_seconds == pytest.approx(clock[0] / 6, abs=1e-9)
    for own in profile.ranks:
        assert math.fsum(own.cells.values()) <= clock[0] / 6 + 1e-9


def test_a_part_of_a_step_has_its_part_of_the_cells():
    step = a_step(phases=work(0.1))
    whole = cells_between(step, 0.0, 0.1)
    halves = [cells_between(step, 0.0, 0.04), cells_between(step, 0.04, 0.1)]
    for cell, seconds in whole.items():
        assert sum(half.get(cell, 0.0) for half in halves) == pytest.approx(seconds)


def test_a_wait_of_one_rank_per_step_is_not_common():
    """Two ranks sleep in turn: in no step do both."""
    even, odd = ranks(work(0.1), work(0.1, blocked=0.03)), ranks(work(0.1, blocked=0.03), work(0.1))
    profile = profile_states([pair[n % 2] for n, pair in enumerate(zip(even, odd, strict=True))])
    blocked = Cell("forward", ThreadState.BLOCKED)
    assert profile.ranks[0].cells[blocked] == pytest.approx(0.015)
    assert profile.common[blocked] == pytest.approx(0.0)
    assert StateProfile.from_json(profile.to_json()) == profile
