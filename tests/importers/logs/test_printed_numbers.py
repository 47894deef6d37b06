"""Numbers as programs print them."""

import re

import pytest

from paceline.importers.logs.parsing.printed_numbers import (
    NUMBER,
    count,
    duration,
    finite,
    positive,
)


@pytest.mark.parametrize(
    ("text", "value"),
    [("1,234.5", 1234.5), ("2.12701e-05", 2.12701e-05), ("-3", -3.0), (".5", 0.5), ("7.", 7.0)],
)
def test_a_number_is_read_as_written(text: str, value: float):
    assert re.fullmatch(NUMBER, text)
    assert finite(text) == value


@pytest.mark.parametrize("text", ["nan", "inf", "1e999", "", "x", "1" * 41, "--3"])
def test_invalid_number_is_none(text: str):
    assert finite(text) is None


def test_garbage_rates_and_times_are_none():
    assert positive("-5.36697e-43") is None
    assert positive("5.36697e-43") is None
    assert duration("0", 1e-3) is None
    assert duration("1e30") is None
    assert duration("2.5", 1e-3) == 0.0025


def test_counts_are_bounded():
    assert count("12,800") == 12800
    assert count("9" * 5000) is None
    assert count("-1") is None
    assert count("٣") is None
