"""Filters and sorting as a user types them."""

import pytest

from paceline.errors import InputError, UnknownNameError
from paceline.validation.reference_data import reference_table
from paceline.validation.row_filters import in_order, selected

ROWS = reference_table().measurements


@pytest.mark.parametrize(
    ("conditions", "count"),
    [
        (["family=hkbu"], 164),
        (["family=hkbu", "nodes>1"], 120),
        (["family!=vtrain"], 2721 - 566),
        (["seq_len=65536"], 8),
        (["tp="], 100),
    ],
)
def test_conditions(conditions, count):
    assert len(selected(ROWS, conditions)) == count


def test_a_condition_may_match_a_substring():
    chosen = selected(ROWS, ["method~XLA ON"])
    assert chosen
    assert all("xla on" in row.configuration.method.lower() for row in chosen)


def test_sorting_puts_unknown_values_last_in_both_directions():
    upwards = in_order(ROWS, "seq_len")
    downwards = in_order(ROWS, "-seq_len")
    assert upwards[0].configuration.sequence == 64
    assert downwards[0].configuration.sequence == 65536
    assert upwards[-1].configuration.sequence is None
    assert downwards[-1].configuration.sequence is None


def test_errors_explain_the_condition():
    with pytest.raises(UnknownNameError, match="devices"):
        selected(ROWS, ["devicess>4"])
    with pytest.raises(InputError, match="not a number"):
        selected(ROWS, ["devices>many"])
    with pytest.raises(InputError, match="not a condition"):
        selected(ROWS, ["devices"])
