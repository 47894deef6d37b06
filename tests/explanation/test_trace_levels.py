"""Levels of traced steps whose parts are known."""

import pytest

from paceline.explanation.trace_levels import top_operations, trace_levels
from paceline.step import Origin, Phase, Step, Task


def a_step(*tasks):
    """Tasks as (name, phase, start, seconds) of one rank."""
    return Step(
        tuple(Task(name, phase, str(phase), seconds) for name, phase, _, seconds in tasks),
        tuple(start for _, _, start, _ in tasks),
        Origin.MEASURED,
    )


STEP = a_step(
    ("gemm", Phase.FORWARD, 0.0, 0.04),
    ("gemm", Phase.BACKWARD, 0.04001, 0.04),
    ("all-reduce", Phase.COMMUNICATE, 0.07, 0.02),
    ("load", Phase.INPUT, 0.09, 0.01),
    ("sgd", Phase.UPDATE, 0.105, 0.005),
)


def test_each_instant_has_one_level():
    levels = trace_levels([STEP])
    assert levels.compute == pytest.approx(0.085)
    assert levels.exposed == pytest.approx(0.09 - 0.08001)
    assert levels.host_wait == pytest.approx(0.01)
    assert levels.kernel_gap == pytest.approx(1e-5)
    assert levels.other == pytest.approx(0.005)
    assert sum(levels.parts.values()) == pytest.approx(levels.step_seconds)


def test_the_largest_loss_is_the_verdict():
    assert "Healthy: 77% of the step is compute" in trace_levels([STEP]).verdict
    late = a_step(("gemm", Phase.FORWARD, 0.0, 0.05), ("send", Phase.COMMUNICATE, 0.05, 0.05))
    assert "exposed communication, 50% of the step" in trace_levels([late]).verdict
    assert trace_levels([]) is None


def test_operations_are_sorted_by_their_time():
    first, *_ = top_operations([STEP])
    assert first[:2] == ("gemm", "forward")
    assert {name for name, *_ in top_operations([STEP])} == {"gemm", "all-reduce", "load", "sgd"}
