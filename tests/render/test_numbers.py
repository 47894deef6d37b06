import math

import pytest

from paceline.render.number_format import (
    Ranged,
    common_decimals,
    format_number,
    percent,
    ranged_text,
    short_number,
)
from paceline.stats.estimate import estimate


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (Ranged(187.6, 183.5, 191.7), "187.6 ± 4.1 img/s"),
        (Ranged(190.3, 178, 205), "190 [178, 205] img/s"),
        (Ranged(187.62), "188 img/s"),
        (Ranged(187.62, math.nan, math.nan), "188 img/s"),
        (Ranged(5.0, 5.0, 5.0), "5.00 ± 0.00 img/s"),
    ],
)
def test_the_interval_determines_the_significant_digits(number, text):
    assert ranged_text(number, "img/s") == text


def test_an_estimate_over_launches_is_shown_as_it_is():
    of_launches = estimate([100.0, 102.0, 104.0])
    assert Ranged.of(of_launches).half_width == pytest.approx(of_launches.half_width)


def test_a_single_launch_has_no_interval():
    assert Ranged.of(estimate([100.0])).bounds is None


def test_a_column_has_one_precision():
    assert common_decimals([0.0123, 0.0456]) == 4
    assert common_decimals([1540.0, 1380.0]) == 0
    assert common_decimals([]) == common_decimals([math.nan, 0.0]) == 0


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "–"), (math.nan, "–"), (math.inf, "∞"), (-math.inf, "-∞"), (-0.001, "0.0")],
)
def test_missing_numbers_and_zero_without_a_sign(value, text):
    assert format_number(value, 1) == text


def test_short_numbers():
    assert [short_number(v) for v in (0.01234, 12.34, 1234.5, 2.5e9)] == [
        "0.0123",
        "12.3",
        "1,234",
        "2.50 G",
    ]
    assert percent(0.938) == "94 %"
