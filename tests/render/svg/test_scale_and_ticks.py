import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.render.svg.axis import count_axis, length_axis, linear_axis, log_axis
from paceline.render.svg.scale import BandScale, LinearScale, LogScale
from paceline.render.svg.ticks import (
    linear_bounds,
    linear_ticks,
    log_bounds,
    log_ticks,
    tick_labels,
)

ANYTHING = st.floats(allow_nan=True, allow_infinity=True)
VALUES = st.lists(ANYTHING, max_size=8)


@given(VALUES, ANYTHING)
def test_every_value_lands_on_the_axis(values, value):
    axes = [
        linear_axis("y", values),
        linear_axis("y", values, from_zero=False),
        length_axis("y", values),
        log_axis("y", values),
        count_axis("x", values, 300, logarithmic=True),
        count_axis("x", values, 300, logarithmic=False),
    ]
    for axis in axes:
        scale = axis.scale(10, 310)
        assert 10 <= scale(value) <= 310
        positions = [scale(tick.value) for tick in axis.ticks]
        assert all(10 <= position <= 310 for position in positions)
        assert positions == sorted(positions)
        assert len({tick.value for tick in axis.ticks}) == len(axis.ticks)


@given(st.lists(st.floats(-1e99, 1e99), min_size=1, max_size=8))
def test_bounds_hold_the_data_and_ticks_are_few(values):
    low, high = linear_bounds(values)
    slack = 1e-9 * (high - low)
    assert low <= min(values) + slack and high >= max(values) - slack
    assert 2 <= len(linear_ticks(low, high)) <= 6


@given(st.lists(st.floats(1e-99, 1e99), min_size=1, max_size=8))
def test_log_bounds_hold_the_data_and_ticks_are_few(values):
    low, high = log_bounds(values)
    assert low <= min(values) and high >= max(values)
    assert 1 <= len(log_ticks(low, high)) <= 7


def test_scales():
    assert LinearScale(0, 10, 100, 200)(2.5) == 125
    assert LinearScale(0, 10, 200, 100)(2.5) == 175
    assert LogScale(1, 100, 0, 100)(10) == pytest.approx(50)
    assert LogScale(1, 100, 0, 100)(-5) == LogScale(1, 100, 0, 100)(math.nan) == 0
    bands = BandScale(4, 0, 100, gap=0.2)
    assert (bands.edge(1), bands.width, bands.centre(1)) == pytest.approx((27.5, 20, 37.5))


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [(0, 40_000, [0, 10_000, 20_000, 30_000, 40_000]), (0, 0.7, [0, 0.2, 0.4, 0.6])],
)
def test_ticks_are_round(low, high, ticks):
    assert linear_ticks(low, high) == pytest.approx(ticks)


def test_few_decades_are_cut_finer():
    assert log_ticks(1, 300) == pytest.approx([1, 3, 10, 30, 100, 300])
    assert log_ticks(0.9, 20) == pytest.approx([1, 2, 5, 10, 20])
    assert log_ticks(1e-9, 1e9) == pytest.approx([1e-9, 1e-6, 1e-3, 1, 1e3, 1e6, 1e9])


@pytest.mark.parametrize(
    ("ticks", "labels"),
    [
        ([0, 0.25, 0.5], ["0.00", "0.25", "0.50"]),
        ([0, 20_000], ["0", "20,000"]),
        ([0, 500_000, 1_000_000], ["0", "0.5M", "1.0M"]),
        ([0, 1e20], ["0", "1e+20"]),
    ],
)
def test_labels(ticks, labels):
    assert tick_labels(ticks) == labels


def test_counts_are_marked_themselves_as_far_as_they_fit():
    def labels(counts, pixels, logarithmic):
        axis = count_axis("GPUs", counts, pixels, logarithmic=logarithmic)
        return [tick.label for tick in axis.ticks]

    assert labels([1, 2, 4, 8], 400, True) == ["1", "2", "4", "8"]
    assert labels(range(1, 257), 300, False)[-1] == "256"
    assert len(labels(range(1, 257), 300, False)) < 15
