"""Predictions of well-known runs are right, or the page says why not."""

import pytest

from known_runs import PAGE, RUNS


@pytest.mark.thorough
@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.title)
def test_a_well_known_run_is_predicted_or_explained(run):
    said, fits = run.said()
    assert abs(run.error(said)) <= run.tolerance or run.reason
    assert fits, "every run took place"


def test_the_page_has_every_run_and_every_reason():
    text = PAGE.read_text(encoding="utf-8")
    assert all(run.title in text for run in RUNS)
    assert all(run.reason in text for run in RUNS)


def test_errors_are_distances_to_the_known_range():
    run = RUNS[1]
    low, high = run.known
    assert run.error(low) == run.error(high) == 0.0
    assert run.error(0.5 * low) == pytest.approx(-0.5)
    assert run.error(2 * high) == pytest.approx(1.0)
