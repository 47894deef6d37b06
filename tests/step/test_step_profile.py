"""Summary of many steps: the last rank, waiting, message times."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.step import Phase
from paceline.step.step_profile import StepProfile, mean_profile, profile_steps
from seen_steps import seen_step

MESSAGES = ((0.5, 1e6), (1.0, 3e6))
RANK = st.fixed_dictionaries(
    {"input": st.floats(0, 0.1), "forward": st.floats(0.01, 0.1), "backward": st.floats(0.01, 0.1)}
)


def test_message_time_starts_when_the_last_rank_is_ready():
    step = seen_step({}, {"forward": 0.2}, messages=MESSAGES, start=0.001, per_byte=1e-9)
    profile = profile_steps([step])
    assert [m.seconds for m in profile.messages] == pytest.approx([0.002, 0.004])
    assert [m.size_bytes for m in profile.messages] == [1e6, 3e6]
    assert profile.message_bytes == 4e6


def test_a_rank_that_is_slow_now_and_then_is_jitter_not_a_straggler():
    one = seen_step({"forward": 0.05}, {}, messages=MESSAGES)
    other = seen_step({}, {"forward": 0.05}, messages=MESSAGES)
    profile = profile_steps([one, other])
    assert profile.straggling_seconds == pytest.approx(0.0)
    assert profile.jitter_seconds == pytest.approx(0.01)
    assert [rank.last_share for rank in profile.ranks] == [0.5, 0.5]


def test_the_usual_rank_is_the_median_of_the_others():
    profile = profile_steps([seen_step({}, {"forward": 0.04}, {"forward": 0.1})])
    assert (profile.slowest.rank, profile.usual.rank) == (2, 1)
    assert profile.usual.seconds(Phase.FORWARD) == pytest.approx(0.04)


@given(ranks=st.lists(RANK, min_size=1, max_size=4), start=st.floats(0, 0.05))
def test_parts_sum_to_the_step(ranks, start):
    profile = profile_steps([seen_step(*ranks, messages=MESSAGES, start=start)])
    parts = (
        profile.usual.computing_seconds
        + profile.straggling_seconds
        + profile.jitter_seconds
        + profile.exposed_seconds
        + profile.idle_seconds
    )
    assert parts == pytest.approx(profile.step_seconds)
    assert profile.idle_seconds >= -1e-9


def test_a_profile_survives_json_and_is_the_mean_of_its_launches():
    one, two = (
        profile_steps([seen_step({"forward": forward}, {}, messages=MESSAGES)])
        for forward in (0.04, 0.06)
    )
    assert StepProfile.from_json(one.to_json()) == one
    both = mean_profile([one, two])
    assert both.steps == 2
    assert both.slowest.seconds(Phase.FORWARD) == pytest.approx(0.05)
    assert mean_profile([]) is None


def test_no_step_has_no_profile():
    assert profile_steps([]) is None
