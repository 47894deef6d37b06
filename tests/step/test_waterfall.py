import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.errors import InputError
from paceline.step.waterfall import ItemKind, Waterfall, WaterfallItem

SECONDS = st.floats(-1e3, 1e3)


def from_ideal(ideal, real, *causes):
    items = [WaterfallItem(f"cause {n}", seconds) for n, seconds in enumerate(causes)]
    return Waterfall.between(WaterfallItem("ideal", ideal, ItemKind.IDEAL), real, items)


def test_remainder_is_unexplained():
    waterfall = from_ideal(0.625, 0.683, 0.041, 0.010, 0.006)
    assert waterfall.items[-1].kind is ItemKind.UNEXPLAINED
    assert waterfall.unexplained_seconds == pytest.approx(0.001)
    assert waterfall.ideal_seconds == 0.625


def test_causes_that_claim_too_much_leave_a_negative_rest():
    assert from_ideal(1.0, 1.1, 0.3).unexplained_seconds == pytest.approx(-0.2)


@pytest.mark.parametrize("unknown", [math.nan, math.inf])
def test_times_that_are_not_known_are_refused(unknown):
    with pytest.raises(InputError, match="finite"):
        from_ideal(1.0, 2.0, unknown)


@given(ideal=SECONDS, real=SECONDS, causes=st.lists(SECONDS, max_size=6))
def test_a_waterfall_sums_to_the_real_step_and_has_no_holes(ideal, real, causes):
    waterfall = from_ideal(ideal, real, *causes)
    assert waterfall.total_seconds == pytest.approx(real, abs=1e-9)
    spans = waterfall.spans
    assert spans[0] == (0.0, ideal)
    assert all(one[1] == two[0] for one, two in pairwise(spans))
