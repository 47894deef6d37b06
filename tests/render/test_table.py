import math

import pytest

from paceline.errors import InputError
from paceline.render.number_format import Ranged
from paceline.render.table import Align, Column, Table


def column_of(*cells, **options):
    table = Table((Column("n", **options),), tuple((cell,) for cell in cells))
    return [text.replace("\u2007", "_") for text in table.texts_of(0)]


def test_symmetric_intervals_have_aligned_plus_minus_signs():
    assert column_of(Ranged(102.4, 100.5, 104.3), Ranged(1187.6, 1173.5, 1201.7), None) == [
        "__102.4 _± 1.9",
        "1,187.6 ± 14.1",
        "______– ______",
    ]


def test_one_asymmetric_interval_puts_the_column_in_brackets():
    assert column_of(Ranged(190, 178, 205), Ranged(1540, 1380, 1700)) == [
        "__190 [178, 205]____",
        "1,540 [1,380, 1,700]",
    ]


def test_a_large_number_beside_small_ones_has_three_digits():
    assert column_of(228.472, 67.838, 0.402, 0.603) == ["228", "67.8", "0.402", "0.603"]


def test_a_column_converts_to_its_unit_at_the_edge():
    assert column_of(0.683, 0.0412, scale=1e3, decimals=1) == ["683.0", "41.2"]
    assert column_of(0.014, -0.02, scale=100, decimals=1, signed=True) == ["+1.4", "-2.0"]


def test_integers_have_no_decimals_and_unknown_values_are_a_dash():
    assert column_of(16, 1, None) == ["16", "1", "–"]
    assert column_of(math.nan, 2.5) == ["–", "2.50"]


def test_numbers_are_aligned_right_and_text_left_by_default():
    table = Table((Column("a"), Column("b"), Column("c", align=Align.RIGHT)), (("x", 1, "y"),))
    assert [table.align_of(i) for i in range(3)] == [Align.LEFT, Align.RIGHT, Align.RIGHT]


def test_a_row_of_the_wrong_length_is_rejected():
    with pytest.raises(InputError, match="row 2 of table 'T' has 1 cells for 2 columns"):
        Table((Column("a"), Column("b")), ((1, 2), (1,)), title="T")


def test_rows_of_different_magnitude_keep_their_digits():
    numbers = [Ranged(157_731.0, 108_100, 223_500), Ranged(18.5, 14.1, 24.4)]
    table = Table.of(numbers, (Column("samples/s"), lambda number: number))
    texts = [text.replace("\u2007", "").replace("  ", " ") for text in table.texts_of(0)]
    assert texts == ["158,000 [108,000, 224,000]", "18.5 [14.1, 24.4]"]


def test_a_wide_interval_does_not_round_its_value_away():
    table = Table.of([Ranged(197.3, 5.2, 8012.0)], (Column("samples/s"), lambda number: number))
    assert table.texts_of(0) == ["200 [10, 8,010]"]
