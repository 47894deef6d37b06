import math

import pytest
from builders import a_launch

from paceline.analysis.launch_statistics import (
    launch_warnings,
    mean_step_seconds,
    step_seconds,
    throughput,
)
from paceline.errors import InputError
from paceline.stats.estimate import estimate
from paceline.stats.step_statistics import autocorrelation
from paceline.store import Outcome, RankSteps, Status
from paceline.store.tidy_tables import launch_rows


def finished(*ranks, cpu=None, **changes):
    """A launch whose ranks had these step times; one warm-up step."""
    records = tuple(
        RankSteps(number, tuple(steps), tuple(cpu or steps)) for number, steps in enumerate(ranks)
    )
    outcome = Outcome(Status.FINISHED, "", ranks=records)
    return a_launch(world_size=len(ranks), outcome=outcome, **changes)


def test_a_step_is_its_slowest_rank_without_warm_up():
    launch = finished([9.0, 1.0, 2.0], [9.0, 3.0, 1.0])
    assert step_seconds(launch) == [3.0, 2.0]
    assert throughput(launch) == pytest.approx(128 / 2.5)


def test_the_interval_comes_from_launches():
    result = estimate([100.0, 104.0, 96.0])
    assert result.mean == 100
    assert result.half_width == pytest.approx(4.303 * 4 / math.sqrt(3), rel=1e-2)


def test_one_launch_has_no_interval():
    assert math.isnan(estimate([100.0]).low)


@pytest.mark.parametrize("job", [{"command": ["python", "train.py"]}, {"recorded": True}])
def test_recorded_scripts_use_elapsed_time(job):
    """Each rank needs 8 s for four steps, so the job does; the slowest of each add up to 12 s."""
    ranks = ([9.0, 1.0, 3.0, 1.0, 3.0], [9.0, 3.0, 1.0, 3.0, 1.0])
    launch = finished(*ranks, job=job)
    assert mean_step_seconds(launch) == pytest.approx(2.0)
    assert throughput(launch) == pytest.approx(128 / 2.0)
    (row,) = launch_rows([launch])
    assert row["counted_seconds"] == pytest.approx(8.0)
    assert row["throughput_samples_per_second"] == pytest.approx(128 / 2.0)
    assert mean_step_seconds(finished(*ranks)) == pytest.approx(3.0)


def test_a_failed_launch_has_no_throughput():
    with pytest.raises(InputError):
        throughput(a_launch(outcome=Outcome(Status.FAILED, "", "rank 0 ended with code 1")))


def test_too_few_launches_cause_a_warning():
    assert [warning.cause for warning in launch_warnings([finished([1.0, 1.0])])] == [
        "too few launches"
    ]


def test_cpu_contention_causes_a_warning():
    launches = [finished([1.0, 1.0, 1.0], cpu=[0.5, 0.5, 0.5], synchronised=False)] * 3
    (warning,) = launch_warnings(launches)
    assert warning.cause == "CPU contention"
    assert "2.00 times" in warning.message


def test_a_drift_within_launches_causes_a_warning():
    launches = [finished([1.0, *(1 + step / 10 for step in range(10))])] * 3
    causes = [warning.cause for warning in launch_warnings(launches)]
    assert causes == ["unstable", "autocorrelation"]


def test_autocorrelation_of_alternating_values_is_negative():
    assert autocorrelation([1, 2] * 5, 1) < -0.8
    assert autocorrelation([1, 1, 1, 1], 1) == 0


def test_a_warm_up_that_is_counted_causes_a_warning():
    launches = [finished([2.0] * 6 + [1.0] * 14)] * 3
    (warning,) = [one for one in launch_warnings(launches) if one.cause == "warm-up"]
    assert warning.remedy == "set --warmup-steps 6"


def test_a_late_change_of_level_causes_a_warning():
    launches = [finished([1.0] * 15 + [2.0] * 5)] * 3
    assert "unstable" in [warning.cause for warning in launch_warnings(launches)]


def test_intervals_that_contradict_each_other_cause_a_warning():
    launches = [finished([1.0, 1.0 + number * 4 % 9 / 1000]) for number in range(9)]
    assert launch_warnings(launches) == []
    (warning,) = launch_warnings([*launches, finished([1.0, 8.0])])
    assert warning.cause == "intervals disagree"
    assert "use Student's t" in warning.remedy


def test_launches_that_drift_cause_a_warning():
    launches = [finished([1.0, 1.0 + number / 1000]) for number in range(9)]
    (warning,) = launch_warnings(launches)
    assert warning.cause == "drift"
    assert "the mean of this study" in warning.message
