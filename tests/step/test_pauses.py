"""Pauses are distinguished from slow steps."""

import pytest

from paceline.step import Origin, Phase, Step, Task
from paceline.step.step_profile import StepProfile, mean_profile, profile_steps


def step(*host):
    """Each rank is at work on the host for so long, then computes 0.1 s."""
    tasks = [
        task
        for rank, seconds in enumerate(host)
        for task in (
            Task("host", Phase.OTHER, "compute", seconds, rank=rank),
            Task("forward", Phase.FORWARD, "compute", 0.1, rank=rank),
        )
    ]
    starts = [start for seconds in host for start in (0.0, seconds)]
    return Step(tuple(tasks), tuple(starts), Origin.MEASURED)


def test_a_checkpoint_every_tenth_step_is_a_pause_of_the_rank_that_writes_it():
    steps = [step(0.5 if number % 10 == 9 else 0.001, 0.002) for number in range(40)]
    profile = profile_steps(steps)
    assert (profile.pauses.rank, profile.pauses.count, profile.pauses.every) == (0, 4, 10)
    assert profile.pauses.each_seconds == pytest.approx(0.498)
    assert profile.pause_seconds == pytest.approx(0.0498)
    assert profile.step_seconds == pytest.approx(0.102), "the step without its pauses"
    whole = sum(one.seconds for one in steps) / len(steps)
    assert profile.step_seconds + profile.pause_seconds == pytest.approx(whole)


@pytest.mark.parametrize(
    "host",
    [
        pytest.param([0.3] * 40, id="every step: no pause but host work"),
        pytest.param([0.001] * 39 + [0.5], id="once may be chance"),
        pytest.param([0.001, 0.02] * 20, id="short ones"),
        pytest.param([0.001, 0.5] * 20, id="every other step"),
    ],
)
def test_single_and_frequent_long_steps_are_not_pauses(host):
    profile = profile_steps([step(seconds) for seconds in host])
    assert profile.pauses is None
    assert profile.pause_seconds == 0.0
    assert profile.steps == 40


def test_pauses_survive_json_and_are_the_mean_of_launches():
    paused = profile_steps([step(0.5 if number % 10 == 9 else 0.0) for number in range(40)])
    quiet = profile_steps([step(0.0) for _ in range(40)])
    assert StepProfile.from_json(paused.to_json()) == paused
    both = mean_profile([paused, quiet])
    assert both.pause_seconds == pytest.approx(paused.pause_seconds / 2)


def test_profiles_of_older_records_are_read():
    document = profile_steps([step(0.01)]).to_json()
    del document["pauses"], document["ranks"][0]["deviation_seconds"]
    assert StepProfile.from_json(document).pauses is None
