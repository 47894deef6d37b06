"""The suite itself: a worker that breaks its contract is caught."""

from dataclasses import replace

import pytest
from builders import study_launches

from paceline.store import Store
from paceline.testing import adapter_suite
from paceline.testing.adapter_suite import QUICK, SMALL_TOLERANCE, small_job
from paceline.testing.bench import Bench
from paceline.testing.contract import run_check
from paceline.testing.reference import reference_losses
from paceline.testing.small_networks import SMALL_NETWORKS


def off_by_one_percent(job):
    optimiser = replace(job.optimiser, learning_rate=1.01 * job.optimiser.learning_rate)
    return replace(job, optimiser=optimiser)


@pytest.fixture
def bench(tmp_path, quick_framework):
    with Store(tmp_path / "store.db") as store:
        yield Bench(quick_framework, store, launch_seconds=10.0)


@pytest.mark.parametrize(
    ("check", "message"),
    [
        ("parameters", "wrote no 'ready' event"),
        ("losses", "losses differ"),
        ("operations", "losses differ"),
        ("synchronisation", "losses differ"),
        ("phases", "no times of parts"),
        ("out of memory", "no reason"),
        ("crash", "no reason"),
    ],
)
def test_a_worker_that_trains_nothing_fails(bench, check, message):
    """The quick worker writes losses of 1 and ends well whatever the job is."""
    result = run_check(check, QUICK[check], bench)
    assert result.passed is False
    assert message in result.message


def test_a_worker_that_times_out_before_it_is_ready_fails(bench, monkeypatch):
    """The quick worker never says that it is."""
    monkeypatch.setattr(adapter_suite, "TIMEOUT_SECONDS", (1.0, 2.0))
    result = run_check("timeout", QUICK["timeout"], bench)
    assert result.passed is False
    assert result.message == "not all ranks were ready after 2 s"


def test_a_framework_that_changes_its_affinity_fails(bench, monkeypatch):
    """Its processes had half a core each, but might have had two."""
    launch = study_launches("pinned")[0]
    ranks = tuple(
        replace(rank, cpu_seconds=tuple(0.5 * wall for wall in rank.wall_seconds))
        for rank in launch.outcome.ranks
    )
    facts = {"thread_cores": [[0, 1]]}
    seen = replace(launch, outcome=replace(launch.outcome, ranks=ranks, facts=facts))
    monkeypatch.setattr(Bench, "finished", lambda self, job: seen)
    result = run_check("cores", QUICK["cores"], bench)
    assert result.passed is False
    assert result.message == "a process with 1 thread may use 2 cores (world size 1)"


@pytest.mark.parametrize("network", SMALL_NETWORKS)
def test_updates_that_are_one_percent_off_are_detected(bench, network):
    job = small_job(bench, network)
    right, wrong = reference_losses(job), reference_losses(off_by_one_percent(job))
    assert max(abs(a - b) / b for a, b in zip(wrong, right, strict=True)) > SMALL_TOLERANCE
