"""From launches with known times to calibration, prediction, comparison and explanation."""

import math
from dataclasses import replace

import pytest
from builders import LAYERS, a_launch, a_profile, study_launches
from builders import timed_launch as launch

from paceline.calibration.machine_fit import fit_machine
from paceline.calibration.measured_job import measured_job
from paceline.calibration.prediction_error import compare_processes
from paceline.errors import InputError
from paceline.explanation.explain_step import explain
from paceline.hardware.link import Link
from paceline.render.html_page import render
from paceline.report.study_analysis import StudyAnalysis
from paceline.report.study_page import study_page
from paceline.store import Outcome, Status


@pytest.fixture
def launches():
    return study_launches()


@pytest.fixture
def profile():
    return a_profile()


def test_layers_are_scaled_to_the_plain_step(launches):
    job = measured_job(launches)
    assert job.step.mean == pytest.approx(1.0)
    assert job.evidence.update_seconds == pytest.approx(0.01)
    assert math.fsum(
        layer.forward_seconds + layer.backward_seconds for layer in job.layers
    ) == pytest.approx(1.0 - 0.01)


def test_contention_and_jitter_come_from_launches_without_communication(launches):
    beside = measured_job(launches).evidence.colocation[2]
    assert beside.slowdown == pytest.approx(1.1)
    assert beside.slowdown * beside.slowest == pytest.approx(1.2)


def test_calibration_uses_no_synchronised_launch_of_several_ranks(launches):
    without = [one for one in launches if one.world_size == 1 or not one.synchronised]
    assert measured_job(without).evidence == measured_job(launches).evidence


def test_two_processes_are_the_sum_of_their_causes(launches, profile):
    prediction = measured_job(launches).on_processes(2, profile)
    assert prediction.ideal_seconds == pytest.approx(1.0)
    assert prediction.sharing_seconds == pytest.approx(0.1, rel=0.01)
    assert prediction.waiting_seconds == pytest.approx(0.1, rel=0.01)
    exposed = prediction.exposed_communication_seconds
    assert 0 < exposed < 12e6 / 2e8 + 1e-3
    assert prediction.step_seconds == pytest.approx(1.2 + exposed, rel=0.005)
    assert sum(prediction.parts_seconds.values()) == pytest.approx(prediction.step_seconds)
    low, high = prediction.samples_per_second_interval
    assert low < prediction.samples_per_second < high < 1.2 * prediction.perfect_samples_per_second
    assert "one process as in 2 launches of resnet44 b=64, torch-ddp" in prediction.notes


def test_the_comparison_has_the_error_and_that_of_perfect_scaling(launches, profile):
    job = measured_job(launches)
    (comparison,) = compare_processes([job.on_processes(2, profile)], launches, job.key)
    predicted = comparison.prediction.step_seconds
    assert comparison.error == pytest.approx(1.25 / predicted - 1)
    assert comparison.perfect_error == pytest.approx(0.25)
    assert comparison.covered


def test_more_nodes_never_give_more_than_perfect_scaling(launches):
    job = measured_job(launches)
    slow = Link("slow", "inter", 1e8, "nic", 1e-5, "ethernet", "tcp")
    fast = Link("fast", "inter", 1e10, "nic", 1e-6, "ethernet", "tcp")
    for nodes in (2, 4, 8, 16):
        on_slow, on_fast = (job.on_nodes(nodes, link) for link in (slow, fast))
        assert on_slow.samples_per_second <= on_fast.samples_per_second
        assert on_fast.samples_per_second <= on_fast.perfect_samples_per_second


def test_smaller_buckets_hide_what_one_bucket_exposes(launches, profile):
    """Less than a mebibyte in all: DDP makes one bucket, and none of it is hidden."""
    small = tuple(replace(layer, gradient_bytes=3e5) for layer in LAYERS)
    launches[2] = replace(launches[2], outcome=replace(launches[2].outcome, layers=small))
    job = measured_job(launches)
    now = job.on_processes(2, profile)
    assert now.exposed_communication_seconds == pytest.approx(1e-4 + 9e5 / 2e8, rel=0.1)
    size, gain = job.best_bucket(profile, 2, now)
    assert size < 9e5
    assert 0.5 * now.exposed_communication_seconds < gain < now.exposed_communication_seconds


def test_the_waterfall_ends_at_the_step_of_the_launches_that_it_explains(launches):
    """Plain launches take 1.25 s; the one whose phases were timed takes 1.3 s, and is explained."""
    explanation = explain(launches)
    amounts = {item.label: item.seconds for item in explanation.waterfall.items}
    assert amounts["compute"] == pytest.approx(0.91), "what its recorded step computes"
    assert amounts["exposed all-reduce"] == pytest.approx(0.05)
    assert amounts["unattributed"] == pytest.approx(0.34), "its recorded step has 0.96 s of 1.3 s"
    assert explanation.waterfall.items[0].note == "on the typical rank"
    assert explanation.waterfall.total_seconds == pytest.approx(1.3)
    assert explanation.efficiency == pytest.approx(0.91 / 1.3)
    assert [level.seconds for level in explanation.levels] == pytest.approx([1.0, 1.1, 1.2, 1.3])
    assert explanation.measured.step.mean == pytest.approx(1.25)
    more, width = explanation.instrumented_difference
    assert more == pytest.approx(0.05)
    assert math.isnan(width), "one launch of each"


@pytest.mark.parametrize(
    ("steps", "exposed"),
    [((1.29, 1.3), 0.195), ((1.3, 1.31), 0.2)],
    ids=["mean over launches", "limited to the step"],
)
def test_parts_of_a_step_explain_the_launch_that_timed_them(launches, steps, exposed):
    """Two launches time the step with and without messages; the plain one is not explained."""
    timed = [
        replace(
            one, outcome=replace(one.outcome, facts={"parts": {"step": [s], "local_step": [1.1]}})
        )
        for number, s in enumerate(steps)
        for one in [launch(20 + number, [1.3] * 4, [1.3] * 4, instrument="difference")]
    ]
    explanation = explain([*launches[:2], launches[4], *timed])
    amounts = {item.label: item.seconds for item in explanation.waterfall.items}
    assert amounts["exposed all-reduce"] == pytest.approx(exposed)
    assert sum(amounts.values()) == pytest.approx(1.3)
    assert explanation.instrumented_difference[0] == pytest.approx(0.05)


def test_missing_measurements_are_listed(launches):
    plain = [one for one in launches if one.instrument == "none" and one.synchronised]
    explanation = explain(plain)
    assert len(explanation.missing) == 2
    assert explanation.waterfall.unexplained_seconds == pytest.approx(0.25)


def test_untimed_communication_is_predicted(launches, profile):
    untimed = [one for one in launches if one.instrument != "phases"]
    explanation = explain(untimed, profile=profile)
    (item,) = [i for i in explanation.waterfall.items if i.label == "exposed all-reduce"]
    assert item.note == "predicted, not measured"
    assert 0 < item.seconds < 12e6 / 2e8 + 1e-3


def test_launches_of_another_framework_are_not_used(launches):
    other = launch(9, [9.0, 9.0, 9.0], framework="homemade")
    assert explain([other, *launches]).alone.step.mean == pytest.approx(1.0)


def test_without_one_process_the_rest_is_listed_as_missing(launches):
    timed = [one for one in launches if one.instrument == "phases"]
    explanation = explain(timed)
    assert explanation.alone is None
    assert explanation.waterfall.ideal_seconds == pytest.approx(0.91), "what a rank computes"
    assert explanation.waterfall.total_seconds == pytest.approx(1.3)
    assert any("-j 1x1" in words for words in explanation.missing)


def test_without_a_finished_launch_there_is_nothing_to_explain(launches):
    with pytest.raises(InputError, match="no finished launch"):
        explain([])
    with pytest.raises(InputError, match="no finished launch with 3 processes") as caught:
        explain(launches, processes=3)
    assert "with 1, 2" in caught.value.hint


def test_an_unprobed_count_is_rejected_with_a_command(launches, profile):
    with pytest.raises(InputError, match="3 processes") as caught:
        measured_job(launches).on_processes(3, profile)
    assert "calibrate --ranks 3" in caught.value.hint


def test_the_report_of_a_study_is_one_page_without_requests(launches, profile):
    calibration = measured_job(launches)
    comparisons = compare_processes(
        [calibration.on_processes(2, profile)], launches, calibration.key
    )
    page = render(
        study_page(
            StudyAnalysis("s", launches, comparisons, (), [explain(launches)], calibration, profile)
        )
    )
    for words in (
        "Prediction against measurement",
        "Where the time goes",
        "Layers",
        "This machine",
    ):
        assert words in page
    assert "http://" not in page.replace("http://www.w3.org/2000/svg", "")
    assert "https://" not in page


def test_a_report_of_failures_renders():
    failed = a_launch(outcome=Outcome(Status.FAILED, "2026", "rank 0 was killed by SIGKILL"))
    page = render(study_page(StudyAnalysis("s", [failed])))
    assert "rank 0 was killed by SIGKILL" in page


def at_batch(number, batch, seconds):
    return launch(number, [seconds] * 4, batch_per_rank=batch)


def test_the_batch_curve_is_the_line_through_the_measured_batches(profile):
    fit = fit_machine(
        [at_batch(b, b, 0.1 + 0.02 * b) for b in (8, 16, 32, 64)], profile, "resnet44"
    )
    assert fit.compute.fixed_seconds == pytest.approx(0.1)
    assert fit.compute.seconds_per_sample == pytest.approx(0.02)
    assert fit.compute.seconds(128) == pytest.approx(0.1 + 0.02 * 128)
    assert fit.compute.worst_residual == pytest.approx(0.0, abs=1e-9)


def test_all_reduce_in_training_is_compared_with_the_probe(launches, profile):
    (in_situ,) = fit_machine(launches, profile).in_situ
    assert in_situ.ranks == 2
    assert in_situ.ratio_to_probe == pytest.approx(0.15 / (1e-4 + 12e6 / 2e8), rel=0.02)


def test_the_next_run_adds_missing_evidence_or_narrows_the_interval(launches, profile):
    alone = [one for one in launches if one.world_size == 1 and one.instrument == "none"]
    fit = fit_machine(alone, profile)
    assert fit.half_width is None
    assert "--instrument layers" in fit.next_runs[0].command
    assert "--no-sync" in fit.next_runs[1].command
    assert [run.half_width for run in fit.next_runs[:2]] == [None, None]
    complete = fit_machine(launches, profile)
    narrowest = complete.next_runs[0]
    assert "--launches" in narrowest.command
    assert narrowest.half_width < complete.half_width


def test_the_fit_is_checked_on_launches_that_it_did_not_use(launches, profile):
    (check,) = fit_machine(launches, profile).checks
    assert (check.processes, check.launches) == (2, 1)
    assert check.measured_seconds == pytest.approx(1.25)
    assert abs(check.error) < 0.05
    assert fit_machine(launches, None).checks == ()


def test_other_frameworks_and_threads_are_not_fitted_together(launches, profile):
    strange = launch(9, [7.0] * 4, framework="homemade")
    threads = launch(10, [3.0] * 4, job={"threads": 2})
    assert fit_machine([*launches, strange, threads], profile) == fit_machine(launches, profile)


def test_nothing_to_fit_is_an_error():
    with pytest.raises(InputError, match="no finished launch"):
        fit_machine([], None)
