import numpy as np
import pytest

from paceline.stats.warmup import Steadiness, steady_state


def levels(*parts):
    """Steps of these (count, seconds), with little noise."""
    random = np.random.default_rng(1)
    steps = np.concatenate([np.full(count, seconds) for count, seconds in parts])
    return (steps * np.exp(random.normal(0, 0.005, steps.size))).tolist()


@pytest.mark.parametrize(
    ("parts", "kind", "steps"),
    [
        ([(30, 1.0)], Steadiness.FLAT, 0),
        ([(5, 1.5), (25, 1.0)], Steadiness.WARM_UP, 5),
        ([(1, 40.0), (29, 1.0)], Steadiness.WARM_UP, 1),
        ([(8, 1.0), (22, 1.2)], Steadiness.SLOW_DOWN, 8),
        ([(22, 1.0), (8, 1.5)], Steadiness.UNSTABLE, 22),
        ([(10, 1.0), (10, 1.4), (10, 1.0), (5, 1.6)], Steadiness.UNSTABLE, 30),
        ([(15, 1.0), (15, 1.01)], Steadiness.FLAT, 0),
        ([(7, 1.0)], Steadiness.UNCHECKED, 0),
    ],
)
def test_course_of_a_launch_is_classified(parts, kind, steps):
    state = steady_state(levels(*parts))
    assert (state.kind, state.warmup_steps) == (kind, steps)


def test_first_step_with_compilation_is_separated():
    assert steady_state(levels((1, 40.0), (29, 1.0))).first_over_steady == pytest.approx(
        40, rel=0.1
    )


def test_equal_steps_are_flat_and_impossible_ones_unchecked():
    assert steady_state([1.0] * 20).kind is Steadiness.FLAT
    assert steady_state([1.0] * 19 + [0.0]).kind is Steadiness.UNCHECKED
