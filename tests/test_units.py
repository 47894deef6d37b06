import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.errors import InputError
from paceline.units import (
    format_bytes,
    format_seconds,
    parse_bandwidth,
    parse_bytes,
    parse_flops,
    parse_seconds,
)


@pytest.mark.parametrize(
    ("parse", "text", "value"),
    [
        (parse_bytes, "25MiB", 25 * 2**20),
        (parse_bytes, "2.6 MB", 2.6e6),
        (parse_bytes, "1e6B", 1e6),
        (parse_bandwidth, "10gbit", 1.25e9),
        (parse_bandwidth, "100Gb/s", 12.5e9),
        (parse_bandwidth, "100Gbps", 12.5e9),
        (parse_bandwidth, "12.5GB/s", 12.5e9),
        (parse_seconds, "200us", 200e-6),
        (parse_seconds, "2min", 120),
        (parse_flops, "15.7TFLOP/s", 15.7e12),
        (parse_flops, "96 gflops", 96e9),
    ],
)
def test_quantities_are_read_as_people_write_them(parse, text, value):
    assert parse(text) == pytest.approx(value)


@pytest.mark.parametrize("parse", [parse_bytes, parse_bandwidth, parse_seconds, parse_flops])
@pytest.mark.parametrize("text", ["", "fast", "10 parsecs", "1.2.3MB", "-5", "nan", "1e999"])
def test_nonsense_is_refused_with_an_example(parse, text):
    with pytest.raises(InputError) as caught:
        parse(text)
    assert caught.value.hint


def test_a_bandwidth_of_zero_is_impossible_but_a_size_of_zero_is_not():
    assert parse_bytes("0") == 0
    with pytest.raises(InputError):
        parse_bandwidth("0gbit")


@given(st.floats(min_value=1e-9, max_value=1e6))
def test_seconds_survive_formatting_to_three_digits(seconds):
    text = format_seconds(seconds).replace(",", "")
    assert parse_seconds(text) == pytest.approx(seconds, rel=0.006)


@given(st.floats(min_value=1000, max_value=1e15))
def test_bytes_survive_formatting_to_three_digits(size):
    assert math.isclose(parse_bytes(format_bytes(size).replace(",", "")), size, rel_tol=0.006)
