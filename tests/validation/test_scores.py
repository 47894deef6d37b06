"""Errors, intervals, regret and null models on cases that one can work out by hand."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import spearmanr

from paceline.validation.cases import Mode, cases, layout_groups
from paceline.validation.forecast import Forecast, Skipped
from paceline.validation.layouts import layout_choices, rank_correlation
from paceline.validation.null_models import PerfectScaling, RingWithoutOverlap
from paceline.validation.published_row import Configuration, PublishedRow
from paceline.validation.reference_data import reference_table
from paceline.validation.run_validation import predictions_csv, run_model
from paceline.validation.scores import RowOutcome, score, scores_by


def row(identifier="a", throughput=100.0, **changes):
    facts = {
        "family": "lab",
        "framework": "pytorch_ddp",
        "model": "resnet50",
        "precision": "fp32",
        "device": "k80",
        "devices": 1,
        "nodes": 1,
        "devices_per_node": 1,
        "global_batch": 32.0,
        "group": "g",
        "batch_unit": "images",
        "throughput_unit": "images",
    }
    return PublishedRow(Configuration(id=identifier, **{**facts, **changes}), throughput)


def outcome(predicted, measured=100.0, low=None, high=None):
    return RowOutcome(row(throughput=measured), Mode.COLD, Forecast(predicted, low, high))


def test_score_of_two_rows():
    result = score([outcome(110.0, low=95.0, high=120.0), outcome(80.0, low=70.0, high=90.0)])
    assert result.mean_absolute_error == pytest.approx(0.15)
    assert result.median_absolute_error == pytest.approx(0.15)
    assert result.bias == pytest.approx(-0.05)
    assert result.coverage == 0.5
    assert result.median_width == pytest.approx((25 / 110 + 20 / 80) / 2)


def test_the_geometric_error_is_symmetric():
    assert score([outcome(200.0)]).geometric_error == pytest.approx(1.0)
    assert score([outcome(50.0)]).geometric_error == pytest.approx(1.0)


def test_nothing_predicted_has_no_error():
    result = score([RowOutcome(row(), Mode.COLD, None, "no such device")])
    assert (result.applicable, result.scored) == (1, 0)
    assert math.isnan(result.mean_absolute_error)


def test_scores_are_split_by_any_column():
    left = RowOutcome(row(family="x"), Mode.COLD, Forecast(110.0))
    right = RowOutcome(row(family="y"), Mode.COLD, Forecast(150.0))
    parts = scores_by([left, right], ["family", "device"])
    assert list(parts) == [("x", "k80"), ("y", "k80")]
    assert parts["y", "k80"].mean_absolute_error == pytest.approx(0.5)


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=3, max_size=30))
def test_rank_correlation_is_spearmans(pairs):
    left, right = (np.array(side, dtype=float) for side in zip(*pairs, strict=True))
    ours = rank_correlation(left, right)
    if len(set(left)) == 1 or len(set(right)) == 1:
        assert math.isnan(ours)
    else:
        assert ours == pytest.approx(spearmanr(left, right).statistic)


def test_baseline_mode_applies_to_rows_with_a_smaller_baseline():
    one = row("one", baseline_id="one")
    two = row("two", devices=2, devices_per_node=2, baseline_id="one")
    again = row("again", baseline_id="one")
    orphan = row("orphan", devices=4, devices_per_node=4, baseline_id="none")
    asked = cases([one, two, again, orphan], Mode.BASELINE)
    assert [bool(case.skip_reason) for case in asked] == [True, False, True, True]
    assert asked[1].baseline is one


def test_a_baseline_of_the_same_source_and_model_may_be_elsewhere():
    one = row("one", baseline_id="one")
    two = row("two", devices=2, devices_per_node=2, baseline_id="one")
    assert cases([two], Mode.BASELINE, {"one": one})[0].baseline is one
    other = row("one", model="vgg16")
    assert cases([two], Mode.BASELINE, {"one": other})[0].baseline is None


def test_the_reference_has_1180_rows_to_predict_from_a_baseline():
    asked = cases(reference_table().measurements, Mode.BASELINE)
    assert sum(not case.skip_reason for case in asked) == 1180


def test_layouts_are_compared_within_one_job_on_the_same_devices():
    shape = {"devices": 4, "devices_per_node": 4, "global_batch": 16.0}
    rows = [
        row("dp", dp=4, tp=1, pp=1, **shape),
        row("tp", dp=1, tp=4, pp=1, **shape),
        row("other", dp=4, tp=1, pp=1, devices=4, devices_per_node=4, global_batch=64.0),
    ]
    assert [[r.configuration.id for r in group] for group in layout_groups(rows).values()] == [
        ["dp", "tp"]
    ]


def test_regret_is_the_measured_cost_of_the_choice():
    shape = {"devices": 4, "devices_per_node": 4}
    slow = row("slow", 80.0, dp=1, tp=4, **shape)
    fast = row("fast", 100.0, dp=4, tp=1, **shape)
    outcomes = [
        RowOutcome(slow, Mode.LAYOUT, Forecast(120.0)),
        RowOutcome(fast, Mode.LAYOUT, Forecast(110.0)),
    ]
    (choice,) = layout_choices(outcomes)
    assert (choice.chosen, choice.best) == ("slow", "fast")
    assert choice.regret == pytest.approx(0.25)
    assert choice.rank_correlation == pytest.approx(-1.0)


def test_ring_null_by_hand():
    base = row("one", 100.0)
    eight = row(
        "eight",
        1.0,
        devices=8,
        nodes=8,
        global_batch=256.0,
        n_params=25e6,
        inter_link="eth_10g",
        nics_per_node=1,
    )
    answer = RingWithoutOverlap().predict(eight.configuration, base)
    ring_seconds = 2 * 7 / 8 * 100e6 / 1.25e9
    assert answer.throughput == pytest.approx(256 / (0.32 + ring_seconds))


@pytest.mark.thorough
def test_nulls_reproduce_their_figures():
    measurements = reference_table().measurements
    ring = run_model(measurements, Mode.BASELINE, RingWithoutOverlap()).outcomes
    overall = score(ring)
    assert overall.scored == 900
    assert overall.mean_absolute_error == pytest.approx(0.1237, abs=0.0005)
    assert overall.median_absolute_error == pytest.approx(0.0637, abs=0.0005)
    several_nodes = [o for o in ring if o.measurement.configuration.nodes > 1]
    by_family = scores_by(several_nodes, ["family"])
    assert by_family["hkbu",].mean_absolute_error == pytest.approx(0.230, abs=0.0005)
    assert by_family["dlperf",].mean_absolute_error == pytest.approx(0.1689, abs=0.0005)
    perfect = score(run_model(measurements, Mode.BASELINE, PerfectScaling()).outcomes)
    assert perfect.mean_absolute_error == pytest.approx(0.2010, abs=0.0005)


def test_no_null_model_reads_the_answer():
    for case in cases(reference_table().measurements, Mode.BASELINE):
        if case.baseline is not None:
            what = case.measurement.configuration
            assert not hasattr(what, "throughput")
            assert not hasattr(what, "step_seconds")


def test_predictions_file_has_a_line_per_row_and_a_reason_where_empty():
    one = row("one", baseline_id="one")
    two = row("two", devices=2, devices_per_node=2, baseline_id="one")

    class OnlyBig:
        name = "only big"

        def predict(self, configuration, baseline):
            if configuration.devices < 8:
                return Skipped("too small")
            return Forecast(1.0)

    text = predictions_csv([run_model([one, two], Mode.BASELINE, OnlyBig())])
    assert text.splitlines() == [
        "id,mode,predicted_throughput,low,high,skipped_because,predicted_memory_gb,fits_probability,"
        "predicted_memory_gib,predicted_first_stage_memory_gib",
        "one,baseline,,,,it is the baseline of its group,,,,",
        "two,baseline,,,,too small,,,,",
    ]
