"""The suite itself: a worker that breaks its contract is caught."""

import pytest
from measure import quick

from paceline.measure.frameworks import framework
from paceline.store import Store
from paceline.testing.adapter_suite import QUICK, Bench, run_check


@pytest.fixture
def bench(tmp_path):
    quick.register()
    with Store(tmp_path / "store.db") as store:
        yield Bench(framework("quick"), store, launch_seconds=10.0)


@pytest.mark.parametrize(
    ("check", "words"),
    [
        ("parameters", "no 'ready' was written"),
        ("losses", "losses differ"),
        ("synchronisation", "losses differ"),
        ("phases", "no parts were written"),
        ("out of memory", "no reason"),
        ("crash", "no reason"),
    ],
)
def test_a_worker_that_trains_nothing_fails(bench, check, words):
    """The quick worker writes losses of 1 and ends well whatever the job is."""
    result = run_check(check, QUICK[check], bench)
    assert result.passed is False
    assert words in result.words
