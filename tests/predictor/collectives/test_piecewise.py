"""Fits through measured points: switch points found, constants recovered."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paceline.errors import InputError
from paceline.predictor.collectives import MeasuredCurve, fit_piecewise

# osu_allreduce 5.4 between 8 hosts on 10 GbE (shyhuai/B-Caffe@1e8a70d): bytes, microseconds
OSU_8_NODES = (
    *((4, 82.28), (1024, 101.89), (8192, 182.03), (12288, 791.79), (32768, 997.06)),
    *((65536, 1110.54), (131072, 1332.52), (262144, 1639.34), (393216, 1923.98)),
    *((655360, 3322.44), (786432, 3493.92), (1048576, 4678.91)),
)


def test_a_single_line_is_recovered():
    points = [(size, 4e-5 + size * 8e-10) for size in np.logspace(2, 8, 20)]
    fit = fit_piecewise(points)
    (piece,) = fit.pieces
    assert piece.alpha_seconds == pytest.approx(4e-5)
    assert piece.beta_seconds_per_byte == pytest.approx(8e-10)
    assert fit.switch_bytes == ()
    assert fit.relative_error < 1e-9


def test_the_switch_of_a_library_is_found_between_the_sizes_around_it():
    sizes = np.logspace(2, 8, 30)
    points = [(s, 3e-5 + s * 4e-9 if s < 10_000 else 2e-4 + s * 1e-9) for s in sizes]
    fit = fit_piecewise(points)
    (switch,) = fit.switch_bytes
    below, above = sizes[sizes < 10_000].max(), sizes[sizes >= 10_000].min()
    assert below < switch < above
    assert fit.pieces[1].alpha_seconds == pytest.approx(2e-4)


def test_the_switch_near_ten_kilobytes_of_open_mpi_is_found_in_its_measurements():
    fit = fit_piecewise([(size, time * 1e-6) for size, time in OSU_8_NODES])
    assert 8192 < fit.switch_bytes[0] < 12288
    assert fit.relative_error < 0.06


def test_beyond_the_last_point_the_last_line_goes_on():
    fit = fit_piecewise([(size, 1e-4 + size * 1e-9) for size in (1e3, 1e4, 1e5, 1e6)])
    assert fit.seconds(1e9) == pytest.approx(1e-4 + 1.0)
    assert fit.seconds(0.0) == 0.0


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.tuples(st.floats(1.0, 1e8), st.floats(1e-6, 1.0)), min_size=4, max_size=14),
    st.floats(1.0, 1e8),
    st.floats(1.0, 100.0),
)
def test_fits_and_curves_never_fall(points, size, more):
    for curve in (fit_piecewise(points), MeasuredCurve.through(points)):
        assert curve.seconds(size * more) >= curve.seconds(size) * (1 - 1e-9)
        assert curve.seconds(size) >= 0.0


def test_a_fit_takes_arrays():
    fit = fit_piecewise([(size, 1e-4 + size * 1e-9) for size in (1e3, 1e4, 1e5, 1e6)])
    sizes = np.array([0.0, 1e3, 1e6])
    assert fit.seconds(sizes) == pytest.approx([fit.seconds(float(size)) for size in sizes])


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


def test_one_point_is_not_a_fit():
    with pytest.raises(InputError, match=r"at least two"):
        fit_piecewise([(1e3, 1e-3)])
