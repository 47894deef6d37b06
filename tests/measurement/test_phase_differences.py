import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.measurement.phase_differences import phases_by_difference

SECONDS = st.lists(st.floats(1e-3, 1.0), min_size=1, max_size=5)


def test_each_part_adds_to_the_one_before():
    phases = phases_by_difference(
        {
            "forward": [1.0, 1.1, 0.9],
            "forward_backward": [3.0],
            "local_step": [3.5],
            "collective": [2.0],
            "step": [4.0],
        }
    )
    assert phases.forward_seconds == 1.0
    assert phases.backward_seconds == 2.0
    assert phases.update_seconds == 0.5
    assert phases.exposed_seconds == 0.5
    assert phases.hidden_seconds == 1.5


def test_unknown_part_is_counted_in_the_next_phase():
    phases = phases_by_difference({"local_step": [3.0], "step": [4.0]})
    assert phases.forward_seconds is None
    assert phases.update_seconds == 3.0
    assert phases.hidden_seconds is None
    assert phases_by_difference({}) is None


@given(st.dictionaries(st.sampled_from(["forward", "forward_backward", "local_step"]), SECONDS))
def test_phases_always_add_up_to_the_step(parts):
    phases = phases_by_difference({**parts, "step": [0.5]})
    known = [phases.forward_seconds, phases.backward_seconds, phases.update_seconds]
    total = sum(part or 0.0 for part in known) + phases.exposed_seconds
    assert total == pytest.approx(phases.step_seconds)
