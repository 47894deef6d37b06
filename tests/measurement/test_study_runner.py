import random
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from measurement import quick

from paceline.analysis.launch_statistics import throughput
from paceline.errors import EnvironmentUnusableError, InputError
from paceline.frameworks.command import interpreter
from paceline.frameworks.framework_registry import framework
from paceline.measurement.job import Job, batch_per_rank
from paceline.measurement.run_job import run_job
from paceline.measurement.study_runner import Design, run_study
from paceline.store import Outcome, Status, Store


@pytest.fixture
def store(tmp_path, quick_framework):
    with Store(tmp_path / "store.db") as opened:
        yield opened


def test_finished_job_is_recorded_with_its_environment(store):
    launch = run_job(quick.job(world_size=2), store, "s")
    assert launch.status is Status.FINISHED
    assert throughput(launch) == pytest.approx(8 / 0.011)
    assert launch.environment["cpu_model"]
    assert launch.outcome.facts["exit_codes"] == [0, 0]
    assert store.launch(launch.id) == launch


@pytest.mark.parametrize(
    ("behaviour", "reason"),
    [
        ("crash", "rank 1: RuntimeError: the last rank has had enough at quick_worker.py:"),
        ("memory", "rank 0: out of memory: cannot allocate 1 TB"),
        ("vanish", "rank 0 exited with code 0 but reported no result"),
        ("broken", "rank 1 ended with code 1: ImportError: libframework.so: cannot open shared"),
        ("segfault", "rank 1 was killed by SIGSEGV"),
        ("hang", "timed out after 2 s: rank 0, 1 still ran; not ready: rank 0, 1"),
        ("absent", "timed out after 2 s: rank 0 still ran; rank 1 exited with code 0 but reported"),
    ],
)
def test_a_failure_is_a_row_with_its_reason_and_its_log(store, behaviour, reason):
    launch = run_job(quick.job(behaviour, world_size=2), store, "s", timeout_seconds=2.0)
    assert launch.status is Status.FAILED
    assert launch.outcome.reason.startswith(reason)
    assert "\n" not in launch.outcome.reason
    log = launch.outcome.reason.partition("(log: ")[2].removesuffix(")")
    assert Path(log).parent == store.path.parent / "launches" / launch.id
    assert Path(log).exists()


def test_results_written_before_an_abort_in_the_teardown_count(store):
    launch = run_job(quick.job("abort"), store, "s")
    assert launch.status is Status.FINISHED
    assert launch.outcome.facts["exit_codes"] == [-6]
    assert "SIGABRT" in launch.outcome.facts["teardown"]


def test_a_failed_launch_does_not_stop_the_study(store):
    design = Design.randomised([quick.job(), quick.job("crash")], 2, seed=1)
    statuses = [launch.status for launch in run_study(store, "s", design)]
    assert sorted(statuses) == ["failed", "failed", "finished", "finished"]


def test_blocks_hold_every_job_once_in_an_order_that_the_seed_decides():
    jobs = [quick.job(), quick.job(world_size=2), quick.job(world_size=3)]
    design = Design.randomised(jobs, 4, seed=7)
    blocks = [design.order[start : start + 3] for start in range(0, 12, 3)]
    assert all(sorted(block) == [0, 1, 2] for block in blocks)
    assert design == Design.randomised(jobs, 4, seed=7)
    assert design.order != Design.randomised(jobs, 4, seed=8).order


def test_a_design_survives_json():
    design = Design.randomised([quick.job(), quick.job(world_size=2)], [3, 1], seed=1)
    assert Design.from_json(design.to_json()) == design


def test_a_study_is_not_run_twice_under_one_name_nor_resumed_when_unknown(store):
    run_study(store, "s", Design.randomised([quick.job()], 1, 1))
    with pytest.raises(InputError, match="already"):
        run_study(store, "s", Design.randomised([quick.job()], 1, 1))
    with pytest.raises(InputError, match="no study named 'other'"):
        run_study(store, "other")


def test_resuming_a_complete_study_runs_nothing(store):
    before = run_study(store, "s", Design.randomised([quick.job()], 2, 1))
    assert run_study(store, "s") == before


def test_a_study_that_holds_launches_of_run_and_import_is_resumed(store):
    """Launches without a design have no position in its order and complete none."""
    (measured,) = run_study(store, "s", Design.randomised([quick.job()], 1, 1))
    imported = replace(measured, id="f" * 15, job={"command": ["train"]})
    store.start(replace(imported, outcome=Outcome(Status.RUNNING, "")))
    store.finish(imported.id, imported.outcome)
    assert [launch.id for launch in run_study(store, "s")] == [measured.id, imported.id]


def test_launch_that_cannot_start_is_failed_with_a_reason_and_retried(store):
    design = Design.randomised([quick.job(launcher="mpiexec")], 1, 1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", "")
        with pytest.raises(EnvironmentUnusableError, match="did not find the program mpiexec"):
            run_study(store, "s", design)
    (launch,) = store.launches("s")
    assert launch.status is Status.INTERRUPTED
    assert "mpiexec" in launch.outcome.reason


def test_a_job_on_several_nodes_is_refused_by_the_launcher(store):
    with pytest.raises(InputError, match="launcher 'local' has 1 host") as refused:
        run_job(quick.job(world_size=4, nodes=2), store, "s")
    assert "-j 1xN" in refused.value.hint
    assert store.launches() == []


@pytest.mark.slow
def test_a_study_killed_twenty_times_loses_nothing_and_is_finished(tmp_path):
    """The promise of the store: finished launches stay, the rest is marked, the study goes on."""
    path = tmp_path / "store.db"
    moments = random.Random(4)
    command = [sys.executable, str(Path(quick.__file__)), str(path)]
    finished = set()
    kills = 0
    while kills < 20:
        process = subprocess.Popen(command)
        try:
            process.wait(timeout=moments.uniform(0.3, 1.2))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        kills += 1
        if not path.exists():
            continue
        with Store(path) as store:
            now = {x.id for x in store.launches() if x.status is Status.FINISHED}
        assert finished <= now
        finished = now
    subprocess.run(command, check=True, timeout=120)
    with Store(path) as store:
        launches = store.launches("study")
        assert store.abandoned() == []
    assert sum(launch.status is Status.FINISHED for launch in launches) == 12
    assert all(launch.status in (Status.FINISHED, Status.INTERRUPTED) for launch in launches)
    assert _no_worker_left()


def _no_worker_left():
    for _ in range(100):
        running = [p for p in psutil.process_iter(["cmdline"]) if _is_worker(p)]
        if not running:
            return True
        time.sleep(0.05)
    return False


def _is_worker(process):
    return any("quick_worker.py" in word for word in process.info["cmdline"] or [])


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("batch_per_rank", 0),
        ("world_size", 0),
        ("steps", 0),
        ("threads", -1),
        ("warmup_steps", -1),
        ("instrument", "everything"),
        ("bucket_bytes", 0.0),
        ("nodes", 3),
    ],
)
def test_impossible_jobs_are_refused(field, value):
    with pytest.raises(InputError) as caught:
        quick.job(**{"world_size": 2, field: value})
    assert caught.value.hint


def test_strong_scaling_shares_the_batch_and_weak_scaling_does_not():
    assert batch_per_rank(64, 4, "weak") == 64
    assert batch_per_rank(64, 4, "strong") == 16
    with pytest.raises(InputError, match="a global batch of 65 evenly over 2"):
        batch_per_rank(65, 2, "strong")


def test_missing_environment_error_has_a_remedy(monkeypatch):
    monkeypatch.setenv("PACELINE_TORCH_PYTHON", "/nowhere/python")
    with pytest.raises(EnvironmentUnusableError, match="cannot be run") as caught:
        interpreter(framework("torch-ddp"))
    assert "paceline frameworks install torch-ddp" in caught.value.hint


def test_a_job_is_json_with_its_protocol():
    assert isinstance(quick.job(), Job)
    assert quick.job().to_json()["protocol"] == 1
