"""Curves through measured points of a collective."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paceline.errors import InputError
from paceline.predictor.comm.measured_curve import MeasuredCurve


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.tuples(st.floats(1.0, 1e8), st.floats(1e-6, 1.0)), min_size=4, max_size=14),
    st.floats(1.0, 1e8),
    st.floats(1.0, 100.0),
)
def test_curves_never_fall(points, size, more):
    curve = MeasuredCurve.through(points)
    assert curve.seconds(size * more) >= curve.seconds(size) * (1 - 1e-9)
    assert curve.seconds(size) >= 0.0


def test_a_curve_goes_on_with_its_last_rate():
    curve = MeasuredCurve.through([(size, 1e-4 + size * 1e-9) for size in (1e3, 1e6, 1e8)])
    assert curve.seconds(1e9) == pytest.approx(1e-4 + 1.0)
    assert curve.seconds(1.0) == pytest.approx(curve.seconds(1e3))


def test_repetitions_and_noise_do_not_break_a_curve():
    repeated = [(1e6, 1e-3), (1e6, 3e-3), (1e6, 2e-3), (1e3, 1e-4), (1.5e6, 1.9e-3)]
    curve = MeasuredCurve.through(repeated)
    assert curve.seconds(1e6) == pytest.approx(2e-3)
    assert curve.seconds(3e6) > curve.seconds(1.5e6)
    level = MeasuredCurve.through([(1e3, 1e-3), (1e6, 1e-3)])
    assert level.seconds(2e6) == pytest.approx(2e-3)


def test_a_slower_curve_takes_so_much_longer_everywhere():
    curve = MeasuredCurve.through([(1e3, 1e-4), (1e6, 1e-3)])
    for size in (0.0, 1e2, 1e5, 1e9):
        assert curve.slower(1.5)(size) == pytest.approx(1.5 * curve.seconds(size))


def test_a_curve_needs_a_point():
    with pytest.raises(InputError, match="no measured point"):
        MeasuredCurve.through([(0.0, 1e-3)])
