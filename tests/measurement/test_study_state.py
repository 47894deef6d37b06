"""How a study goes on: retries, added levels, stopping rules, kills."""

import random
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from measurement import quick

from paceline.errors import InputError
from paceline.measurement.study_design import Design
from paceline.measurement.study_runner import run_study
from paceline.measurement.study_state import StudyState
from paceline.stats.stopping import StoppingRule
from paceline.store import Outcome, RankSteps, Status, Store

KILLS = 50
STUDY = Path(__file__).parent / "killed_study.py"


@pytest.fixture
def store(tmp_path, quick_framework):
    with Store(tmp_path / "store.db") as opened:
        yield opened


@pytest.fixture
def instant(monkeypatch, store):
    """Launches that take no time: seconds per step of each, or None for a failure, from a list."""
    from builders import a_launch

    answers = {}

    def run(job, into, study, *_, marks, **__):
        own = answers.setdefault(job.batch_per_rank, iter([]))
        seconds = next(own, 0.1)
        number = into.count()
        launch = a_launch(
            f"{number:015x}",
            study=study,
            framework=job.framework,
            model=job.model,
            batch_per_rank=job.batch_per_rank,
            job={**job.to_json(), **marks},
        )
        status = Status.FAILED if seconds is None else Status.FINISHED
        steps = () if seconds is None else (RankSteps(0, (seconds,) * 4),)
        launch = replace(launch, outcome=Outcome(status, "", ranks=steps, facts={"seconds": 1.0}))
        into.complete(launch)
        return launch

    monkeypatch.setattr("paceline.measurement.study_runner.run_job", run)
    return answers


def jobs(*batches):
    return [quick.job(batch_per_rank=batch, factors={"batch": batch}) for batch in batches]


def test_a_failed_launch_is_tried_once_more_after_the_others(store, instant):
    instant[1] = iter([0.1, None, 0.1, 0.1])
    launches = run_study(store, "s", Design.randomised(jobs(1, 2), 3, 1))
    assert [one.status for one in launches].count("failed") == 1
    assert launches[-1].job["replicate"] == 1, "what failed comes last"
    assert Counter(one.batch_per_rank for one in launches) == {1: 4, 2: 3}


def test_configuration_that_fails_twice_is_given_up(store, instant):
    instant[1] = iter([None] * 9)
    launches = run_study(store, "s", Design.randomised(jobs(1, 2), 5, 1))
    assert Counter((one.batch_per_rank, str(one.status)) for one in launches) == {
        (1, "failed"): 2,
        (2, "finished"): 5,
    }
    ended = store.design("s")["ended"]
    assert [one["stopped_by"] for one in ended["configurations"]] == ["failed", "design"]


def test_added_level_runs_only_missing_launches(store, instant):
    run_study(store, "s", Design.randomised(jobs(1, 2), 2, 1))
    launches = run_study(store, "s", Design.randomised(jobs(1, 3, 2), 2, 1), extend=True)
    assert [one.batch_per_rank for one in launches[4:]] == [3, 3]
    more = run_study(store, "s", Design.randomised(jobs(1, 3, 2), 3, 1), extend=True)
    assert sorted(one.batch_per_rank for one in more[6:]) == [1, 2, 3]
    with pytest.raises(InputError, match="already"):
        run_study(store, "s", Design.randomised(jobs(1), 1, 1))


def test_launches_are_added_until_the_interval_is_narrow_or_the_cap_is_reached(store, instant):
    noise = random.Random(1)
    instant[1] = iter([0.1 * noise.uniform(0.5, 1.5) for _ in range(99)])
    instant[2] = iter([0.1 + 1e-5 * (number % 2) for number in range(99)])
    design = replace(Design.randomised(jobs(1, 2), 8, 1), stopping=StoppingRule(0.02, most=12))
    launches = run_study(store, "s", design)
    assert Counter(one.batch_per_rank for one in launches) == {1: 12, 2: 8}
    assert all(one.job["stopping"] for one in launches)
    ended = store.design("s")["ended"]["configurations"]
    assert [one["stopped_by"] for one in ended] == ["most launches", "narrow enough"]
    assert run_study(store, "s") == launches, "nothing is left"


def test_the_time_of_a_study_ends_it(store, instant):
    design = replace(Design.randomised(jobs(1, 2), 9, 1), most_seconds=4.0)
    assert len(run_study(store, "s", design)) == 4
    assert store.design("s")["ended"]["by"] == "time"


def test_launches_of_an_earlier_version_count(store, instant):
    design = Design.randomised(jobs(1, 2), 2, 1)
    launches = run_study(store, "s", design)
    old = [
        replace(one, job={k: v for k, v in one.job.items() if k != "replicate"}) for one in launches
    ]
    assert StudyState.of(design, old).next_launch() is None
    assert StudyState.of(design, old[:-1]).next_launch().position == 3


def test_unstable_launches_are_not_averaged_and_tried_again(store, instant, monkeypatch):
    design = Design.randomised(jobs(1), 2, 1)
    launches = run_study(store, "s", design)
    facts = {**launches[0].outcome.facts, "steadiness": "unstable"}
    unstable = replace(launches[0], outcome=replace(launches[0].outcome, facts=facts))
    assert not unstable.is_steady
    turn = StudyState.of(design, [unstable, launches[1]]).next_launch()
    assert turn.replicate == unstable.job["replicate"]


def test_warm_up_is_detected_from_step_times(tmp_path, quick_framework):
    design = Design.randomised([quick.job("warming", steps=30, warmup_steps=1)], 1, 1)
    with Store(tmp_path / "warm.db") as store:
        (launch,) = run_study(store, "s", replace(design, detect_warmup=True))
        (fixed,) = run_study(store, "t", design)
    assert (launch.warmup_steps, fixed.warmup_steps) == (6, 1)
    assert launch.outcome.facts["steadiness"] == "warm-up"


def finished_rows(path):
    with Store(path, create=False) as store:
        return [one for one in store.launches("study") if one.status is Status.FINISHED]


def table_of(path):
    """Results of a study without values that differ in every run."""
    rows = [
        (one.batch_per_rank, one.world_size, one.job["replicate"], one.outcome.ranks)
        for one in finished_rows(path)
    ]
    return sorted(rows, key=repr)


@pytest.mark.slow
def test_fifty_kills_lose_nothing_and_double_nothing(tmp_path):
    path, moments, known = tmp_path / "killed.db", random.Random(18), set()
    for _ in range(KILLS):
        process = subprocess.Popen([sys.executable, str(STUDY), str(path)])
        try:
            process.wait(timeout=moments.uniform(0.2, 1.6))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        now = {one.id for one in finished_rows(path)} if path.exists() else set()
        assert known <= now
        known = now
    for place in (path, tmp_path / "undisturbed.db"):
        subprocess.run([sys.executable, str(STUDY), str(place)], check=True, timeout=300)
    assert table_of(path) == table_of(tmp_path / "undisturbed.db")


def test_two_runners_do_not_collide(tmp_path):
    path = tmp_path / "both.db"
    first = subprocess.Popen([sys.executable, str(STUDY), str(path)])
    try:
        while not (path.parent / "owners").exists() or not list(path.parent.glob("owners/study-*")):
            assert first.poll() is None
        second = subprocess.run(
            [sys.executable, str(STUDY), str(path)], capture_output=True, text=True, timeout=60
        )
        assert "is being measured by process" in second.stderr
    finally:
        first.kill()
        first.wait()
