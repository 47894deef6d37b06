"""Fitted constants: how effects add up, what scaling adds, files, intervals, the domain."""

import dataclasses
import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.predictor.fitted import tables
from paceline.predictor.fitted.circumstances import Circumstances, base_of, kind_of, width_of
from paceline.predictor.fitted.computing import COMPUTING, computing_factor
from paceline.predictor.fitted.domain import domain_notes
from paceline.predictor.fitted.effects import Effects
from paceline.predictor.fitted.intervals import BASELINE, COLD, FAR, NEAR, PLAIN, SAME, IntervalRule
from paceline.predictor.fitted.scaling import (
    PREDICTOR_ALONE,
    ScalingTerms,
    added_seconds,
    slowest_of,
    terms_for,
)
from paceline.workload.workload import Workload

seconds = st.floats(1e-4, 1e3)


def test_a_quantity_is_its_constant_plus_the_effects_at_hand():
    effects = Effects(
        {"computing": 0.1},
        {"computing": {"device": {"k80": 0.2}, "base+kind": {"mxnet/image": -0.05}}},
    )
    here = Circumstances(device="k80", base="mxnet", kind="image")
    assert effects.value("computing", here) == pytest.approx(0.25)
    assert effects.value("computing", Circumstances(device="h100")) == pytest.approx(0.1)
    assert effects.knows("computing", "device", here)
    assert not effects.knows("computing", "device", Circumstances(device="h100"))
    assert computing_factor(effects, here) == pytest.approx(math.exp(0.25))


def test_a_factor_whose_first_part_is_unknown_has_no_level():
    assert Circumstances(kind="image").level("compiler+kind") == ""
    assert Circumstances(compiler="xla", kind="image").level("compiler+kind") == "xla/image"


@pytest.mark.parametrize(
    ("framework", "base"),
    [
        ("horovod-mxnet", "mxnet"),
        ("horovod-tensorflow", "tensorflow"),
        ("tf-cnn-benchmarks", "tensorflow"),
        ("oneflow-megatron", "oneflow"),
        ("megatron-deepspeed", "megatron"),
        ("mg-wfbp", "torch"),
        ("torch-ddp", "torch"),
    ],
)
def test_the_library_under_a_framework(framework, base):
    assert base_of(framework) == base


def test_one_worker_waits_for_nobody_and_more_wait_longer():
    assert slowest_of(1) == 0.0
    assert [slowest_of(n) for n in (2, 8, 64)] == sorted(slowest_of(n) for n in (2, 8, 64))
    assert slowest_of(2) == pytest.approx(1 / math.sqrt(math.pi))


@given(seconds, seconds, seconds)
def test_the_predictor_alone_adds_what_the_scheduler_left_exposed(alone, exposed, message):
    terms = terms_for(PREDICTOR_ALONE, Circumstances(), nodes=2)
    added = added_seconds(terms, alone, exposed, message, slowest_of(16))
    assert added == pytest.approx(exposed, rel=1e-6)


@given(seconds, seconds, seconds, st.floats(0, 1), st.floats(1, 3))
def test_longer_messages_never_shorten_a_step(alone, exposed, message, share, factor):
    terms = ScalingTerms(share, 1.0, 0.01, 0.001)
    before = added_seconds(terms, alone, exposed, message, 1.0)
    assert added_seconds(terms, alone, exposed, factor * message, 1.0) >= before
    assert added_seconds(terms, alone, factor * exposed, message, 1.0) >= before * (1 - 1e-12)


def test_files_read_back_as_they_were_written(tmp_path, monkeypatch):
    everything, without = tables.fitted(), tables.held_out()
    (tmp_path / tables.EFFECTS_FILE).write_text(tables.effects_toml(everything), encoding="utf-8")
    (tmp_path / tables.HELD_OUT_FILE).write_bytes(tables.held_out_bytes(without))
    monkeypatch.setattr(tables, "_folder", lambda: tmp_path)
    assert tables.fitted.__wrapped__() == everything
    assert tables.held_out.__wrapped__() == without


def test_every_reference_group_has_a_fit_without_it():
    without = tables.held_out()
    for group, fold in without.folds.items():
        assert without.without_group(group) is without.by_fold[fold]
    assert without.without_group("a group of tomorrow") is None
    assert without.without_family("a source of tomorrow") is None


def test_a_fit_without_a_source_knows_nothing_of_its_sites_and_programs():
    for family, effects in tables.held_out().by_family.items():
        for factors in effects.levels.values():
            for factor in ("site", "program", "script", "kernel"):
                assert not [x for x in factors.get(factor, {}) if x.startswith(f"{family}/")]


def test_intervals_are_wider_cold_than_from_a_baseline_and_wider_far_than_near():
    rules = tables.fitted().intervals

    def width(mode, distance):
        low, high = rules.rule(mode, distance).bounds(1.0, 0.1)
        assert low < 1.0 < high
        return high - low

    assert width(COLD, NEAR) > width(BASELINE, NEAR)
    assert width(COLD, FAR) > width(BASELINE, FAR)
    assert width(COLD, PLAIN) > width(BASELINE, PLAIN)
    assert width(BASELINE, FAR) > width(BASELINE, NEAR)
    assert width(COLD, FAR) > width(COLD, NEAR) > width(COLD, SAME)


def test_work_that_sources_agree_on_has_narrower_intervals():
    rules = tables.fitted().intervals
    text = rules.plain_rule(COLD, "text", "half").bounds(1.0, 0.1)
    everything = rules.plain_rule(COLD, "other", "half").bounds(1.0, 0.1)
    assert everything == rules.rule(COLD, PLAIN).bounds(1.0, 0.1)
    assert text[1] - text[0] < everything[1] - everything[0]


@pytest.mark.parametrize(
    ("model", "precision", "kind", "width"),
    [
        ("resnet50", "fp32", "image", "full"),
        ("vit_b_16", "amp_fp16", "image", "half"),
        ("gpt2", "bf16", "text", "half"),
        ("lstm_ptb", "tf32", "text", "full"),
        ("ncf", "fp32", "other", "full"),
    ],
)
def test_the_kind_of_work_is_told_by_what_it_reads(model, precision, kind, width):
    workload = Workload.of(model, 2, precision=precision)
    assert (kind_of(workload), width_of(workload)) == (kind, width)


@given(st.floats(0, 1), st.floats(0, 1))
def test_what_is_added_more_is_known_less(first, second):
    rule = IntervalRule(0.05, 0.3, -2.0, 2.0, 100)
    small, large = sorted((first, second))
    assert rule.bounds(1.0, small)[1] <= rule.bounds(1.0, large)[1]
    assert rule.standard_error(small) <= rule.standard_error(large)


def test_the_domain_is_named_when_it_is_left():
    assert domain_notes("v100_sxm2_16gb", "torch-ddp", 8) == ()
    (note,) = domain_notes("mi300x", "torch-ddp", 1024)
    assert "no device 'mi300x'" in note
    assert "more than 64 devices" in note


def test_shipped_constants_say_what_they_were_fitted_on():
    fitted = tables.fitted()
    assert "1850 rows" in fitted.fitted_on
    assert COMPUTING.name in fitted.effects.constants
    assert json.dumps(dataclasses.asdict(fitted.effects))
