"""Student's t against SciPy's."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import stdtr, stdtrit

from paceline.stats.distributions import lower_tail, upper_quantile

DEGREES = st.integers(1, 100_000)


@given(st.floats(-300.0, 300.0), DEGREES)
def test_the_tail_is_that_of_scipy(t, degrees):
    assert lower_tail(t, degrees) == pytest.approx(stdtr(degrees, t), rel=1e-9, abs=1e-280)


@given(st.floats(1e-6, 0.499), DEGREES)
def test_the_quantile_is_that_of_scipy(chance, degrees):
    expected = -stdtrit(degrees, chance)
    assert upper_quantile(chance, degrees) == pytest.approx(expected, rel=1e-8, abs=1e-10)


def test_quantiles_of_the_textbook():
    assert upper_quantile(0.025, 2) == pytest.approx(4.302653, rel=1e-6)
    assert upper_quantile(0.05, 1) == pytest.approx(6.313752, rel=1e-6)


@given(st.floats(-50.0, 50.0), DEGREES)
def test_both_tails_make_one(t, degrees):
    assert lower_tail(t, degrees) + lower_tail(-t, degrees) == pytest.approx(1.0)
