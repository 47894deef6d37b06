"""From launches with known times to calibration, prediction, comparison and explanation."""

import math
from dataclasses import replace

import pytest
from builders import a_launch

from paceline.analyse.calibration import calibrate
from paceline.analyse.comparison import compare_processes
from paceline.analyse.explain import explain
from paceline.analyse.local_prediction import best_bucket, predict_nodes, predict_processes
from paceline.analyse.machine_fit import fit_machine
from paceline.errors import InputError
from paceline.hardware.link import Link
from paceline.hardware.profile import CollectivePoint, Colocation, MachineProfile
from paceline.report.page import render
from paceline.report.study import StudyResults, study_page
from paceline.step import Origin, Phase, Step, Task
from paceline.store import LayerTiming, Outcome, RankSteps, Status

LAYERS = (
    LayerTiming("conv1", 0.2, 0.4, 4e6),
    LayerTiming("relu1", 0.1, 0.1, 0.0),
    LayerTiming("conv2", 0.2, 0.4, 8e6),
)


def launch(number, *ranks, layers=(), timeline=None, **changes):
    records = tuple(
        RankSteps(rank, (9.0, *steps), (9.0, *steps)) for rank, steps in enumerate(ranks)
    )
    outcome = Outcome(
        Status.FINISHED, "2026", ranks=records, layers=tuple(layers), timeline=timeline
    )
    return a_launch(f"l{number}", world_size=len(ranks), outcome=outcome, **changes)


def timed_step(ranks, exposed):
    """Forward 0.3 s, backward 0.6 s, an all-reduce that ends ``exposed`` s after it."""
    tasks, starts = [], []
    for rank in range(ranks):
        for task, start in (
            (Task("forward", Phase.FORWARD, "compute", 0.3, rank=rank), 0.0),
            (Task("backward", Phase.BACKWARD, "compute", 0.6, rank=rank), 0.3),
            (
                Task(
                    "all-reduce",
                    Phase.COMMUNICATE,
                    "network",
                    exposed + 0.1,
                    rank=rank,
                    size_bytes=12e6,
                ),
                0.8,
            ),
            (Task("update", Phase.UPDATE, "compute", 0.01, rank=rank), 0.9 + exposed),
        ):
            tasks.append(task)
            starts.append(start)
    return Step(tuple(tasks), tuple(starts), Origin.MEASURED)


@pytest.fixture
def launches():
    """One process: 1 s. Side by side: 1.1 s each, the slower of a step 1.2 s. Together: 1.25 s."""
    return [
        launch(1, [1.0, 1.0, 1.0, 1.0]),
        launch(2, [1.0, 1.0, 1.0, 1.0]),
        launch(3, [1.0, 1.0], layers=LAYERS, timeline=timed_step(1, 0.0), instrument="layers"),
        launch(4, [1.2, 1.0, 1.2, 1.0], [1.0, 1.2, 1.0, 1.2], synchronised=False),
        launch(5, [1.25] * 4, [1.25] * 4),
        launch(6, [1.3] * 4, [1.3] * 4, timeline=timed_step(2, 0.05), instrument="phases"),
    ]


@pytest.fixture
def profile():
    points = tuple(
        CollectivePoint(size, 1e-4 + size / 2e8, 1e-4, 1e-1) for size in (1e3, 1e5, 1e6, 1e7, 1e8)
    )
    return MachineProfile(
        machine="test machine",
        measured_at="2026-01-01T00:00:00.000+00:00",
        source="test",
        threads=1,
        gemm_flops={64: 1e9},
        memory_bandwidth=1e10,
        all_reduce={2: points},
        colocation={2: Colocation(1.0, 1.0)},
        load_average=0.0,
    )


def test_layers_are_scaled_to_the_plain_step(launches):
    calibration = calibrate(launches)
    assert calibration.step.mean == pytest.approx(1.0)
    assert calibration.update_seconds == pytest.approx(0.01)
    assert math.fsum(
        layer.forward_seconds + layer.backward_seconds for layer in calibration.layers
    ) == pytest.approx(1.0 - 0.01)


def test_sharing_and_waiting_come_from_ranks_that_did_not_talk(launches):
    beside = calibrate(launches).colocated[2]
    assert beside.step.mean == pytest.approx(1.1)
    assert beside.slowest.mean == pytest.approx(1.2)


def test_calibration_uses_no_synchronised_launch_of_several_ranks(launches):
    without = [one for one in launches if one.world_size == 1 or not one.synchronised]
    assert repr(calibrate(without)) == repr(calibrate(launches))  # unknown numbers are NaN


def test_two_processes_are_the_sum_of_their_causes(launches, profile):
    prediction = predict_processes(calibrate(launches), profile, 2)
    assert prediction.sharing_seconds == pytest.approx(0.1)
    assert prediction.waiting_seconds == pytest.approx(0.1)
    assert 0 < prediction.exposed_seconds < 12e6 / 2e8 + 1e-3
    assert prediction.step_seconds == pytest.approx(1.2 + prediction.exposed_seconds)
    low, high = prediction.throughput_interval
    assert low < prediction.throughput < high < prediction.perfect_throughput * 1.2


def test_the_comparison_has_the_error_and_that_of_perfect_scaling(launches, profile):
    calibration = calibrate(launches)
    (comparison,) = compare_processes([predict_processes(calibration, profile, 2)], launches)
    predicted = comparison.prediction.step_seconds
    assert comparison.error == pytest.approx(1.25 / predicted - 1)
    assert comparison.perfect_error == pytest.approx(0.25)
    assert comparison.covered


def test_more_nodes_never_give_more_than_perfect_scaling(launches):
    calibration = calibrate(launches)
    slow = Link("slow", "inter", 1e8, "nic", 1e-5, "ethernet", "tcp")
    fast = Link("fast", "inter", 1e10, "nic", 1e-6, "ethernet", "tcp")
    for nodes in (2, 4, 8, 16):
        on_slow, on_fast = (predict_nodes(calibration, link, nodes) for link in (slow, fast))
        assert on_slow.throughput <= on_fast.throughput <= on_fast.perfect_throughput


def test_smaller_buckets_hide_what_one_bucket_exposes(launches, profile):
    """Less than a mebibyte in all: DDP makes one bucket, and none of it is hidden."""
    small = tuple(replace(layer, gradient_bytes=3e5) for layer in calibrate(launches).layers)
    calibration = replace(calibrate(launches), layers=small)
    now = predict_processes(calibration, profile, 2)
    assert now.exposed_seconds == pytest.approx(1e-4 + 9e5 / 2e8, rel=0.1)
    size, gain = best_bucket(calibration, profile, 2, now)
    assert size < 9e5
    assert 0.5 * now.exposed_seconds < gain < now.exposed_seconds


def test_the_waterfall_ends_at_the_measured_step(launches):
    explanation = explain(launches)
    amounts = {item.label: item.seconds for item in explanation.waterfall.items}
    assert amounts["ideal step"] == pytest.approx(1.0)
    assert amounts["sharing the machine"] == pytest.approx(0.1)
    assert amounts["waiting for the slower"] == pytest.approx(0.1)
    assert amounts["exposed all-reduce"] == pytest.approx(0.05)
    assert amounts["unexplained"] == pytest.approx(0.0, abs=1e-9)
    assert explanation.waterfall.total_seconds == pytest.approx(1.25)
    assert explanation.efficiency == pytest.approx(0.8)


def test_what_is_missing_for_an_explanation_is_said(launches):
    plain = [one for one in launches if one.instrument == "none" and one.synchronised]
    explanation = explain(plain)
    assert len(explanation.missing) == 2
    assert explanation.waterfall.unexplained_seconds == pytest.approx(0.25)


def test_without_a_single_process_there_is_nothing_to_explain(launches):
    with pytest.raises(InputError, match="one process"):
        explain([one for one in launches if one.world_size > 1])


def test_an_unprobed_count_is_refused_with_what_to_run(launches, profile):
    with pytest.raises(InputError, match="3 processes") as caught:
        predict_processes(calibrate(launches), profile, 3)
    assert "probe --ranks 3" in caught.value.hint


def test_the_report_of_a_study_is_one_page_without_requests(launches, profile):
    calibration = calibrate(launches)
    comparisons = compare_processes([predict_processes(calibration, profile, 2)], launches)
    page = render(
        study_page(
            StudyResults("s", launches, comparisons, (), explain(launches), calibration, profile)
        )
    )
    for words in ("Predicted and measured", "Where the time goes", "Layers", "This machine"):
        assert words in page
    assert "http://" not in page.replace("http://www.w3.org/2000/svg", "")
    assert "https://" not in page


def test_a_report_of_failures_alone_still_renders():
    failed = a_launch(outcome=Outcome(Status.FAILED, "2026", "rank 0 was killed by SIGKILL"))
    page = render(study_page(StudyResults("s", [failed])))
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


def test_all_reduce_in_training_is_set_against_the_probe(launches, profile):
    (in_situ,) = fit_machine(launches, profile).in_situ
    assert in_situ.ranks == 2
    assert in_situ.ratio_to_probe == pytest.approx(0.15 / (1e-4 + 12e6 / 2e8), rel=0.02)


def test_the_next_run_is_what_is_missing_and_more_launches_narrow_the_interval(launches, profile):
    alone = [one for one in launches if one.world_size == 1 and one.instrument == "none"]
    fit = fit_machine(alone, profile)
    assert fit.half_width is None
    assert "--instrument layers" in fit.next_runs[0].command
    assert "--unsynchronised" in fit.next_runs[1].command
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


def test_nothing_to_fit_is_said():
    with pytest.raises(InputError, match="no launch has finished"):
        fit_machine([], None)
