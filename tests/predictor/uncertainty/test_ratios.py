"""Ratios of throughputs are known better than the throughputs."""

import json
import math

import pytest

import paceline as pl
from paceline.constants import number
from paceline.predictor.uncertainty.ratios import (
    apart,
    rate_of,
    rate_of_json,
    ratio_deviation,
    ratio_error,
    ratio_of_rates,
    throughput_ratio,
)


def predicted(**words):
    given = {"nodes": 2, "batch": 1, "framework": "torch-fsdp", "zero": 3, **words}
    return pl.predict("llama3_8b", "dgx-h100", **given)


def test_a_ratio_has_a_narrower_interval_than_its_parts():
    fast, slow = predicted(), predicted(link="eth_100g")
    ratio = throughput_ratio(slow, fast)
    assert ratio.value == pytest.approx(slow.samples_per_second / fast.samples_per_second)
    assert ratio.low < ratio.value < ratio.high < 1.0
    assert ratio.distinguishable
    independent = math.hypot(fast.relative_error, slow.relative_error)
    assert ratio_error(rate_of(predicted(nodes=4)), rate_of(fast)) < independent
    back = throughput_ratio(fast, slow)
    assert back.low == pytest.approx(1 / ratio.high)


def test_written_predictions_have_the_same_ratio():
    own, other = predicted(), predicted(nodes=4, link="eth_100g")
    expected = throughput_ratio(own, other)
    written = [json.loads(json.dumps(one.to_dict())) for one in (own, other)]
    found = ratio_of_rates(*map(rate_of_json, written))
    assert (found.value, found.low, found.high) == pytest.approx(
        (expected.value, expected.low, expected.high), rel=1e-6
    )
    back = expected.of_steps(1 / expected.value)
    assert back.high / back.value == pytest.approx(expected.high / expected.value)


def test_a_prediction_equals_itself():
    one = predicted()
    assert throughput_ratio(one, predicted()).high == 1.0
    assert not throughput_ratio(one, one).distinguishable


def test_other_programs_share_no_error():
    own, other = predicted(), predicted(framework="megatron-lm")
    expected = math.hypot(own.relative_error, other.relative_error)
    assert ratio_error(rate_of(own), rate_of(other)) == pytest.approx(expected)


def test_the_terms_of_the_standard_error():
    base = number("spread.ratio.base")
    assert ratio_deviation(0.0, 0.0, other_precision=False) == pytest.approx(base)
    lost = number("spread.ratio.losses") * 0.5
    batch = number("spread.ratio.batch") * math.log(2)
    expected = math.hypot(base, lost, batch, number("spread.ratio.precision"))
    assert ratio_deviation(0.5, math.log(2), other_precision=True) == pytest.approx(expected)
    assert apart({"a": 0.3}, {"b": 0.4}) == pytest.approx(0.5)
