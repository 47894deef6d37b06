"""Launches and studies through a real Slurm of four nodes, also when one of them dies."""

import json
import os
import subprocess
import sys
import threading
import time

import pytest

from launch.slurm_box import box, running_box
from paceline.errors import PacelineError
from paceline.frameworks.command import check_runnable
from paceline.frameworks.framework_registry import framework
from paceline.launch import LaunchRequest, LaunchSettings, launcher
from paceline.store import Status, Store
from paceline.study import Study
from paceline.testing.launcher_suite import CHECKS, LauncherBench, run_check

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def slurm_box(tmp_path_factory):
    with running_box(tmp_path_factory.mktemp("slurm"), os.environ) as directory:
        yield directory


@pytest.mark.parametrize("check", CHECKS)
def test_ranks_of_slurm_keep_the_contract(check, slurm_box, tmp_path):
    result = run_check(check, CHECKS[check], LauncherBench(launcher("slurm"), tmp_path))
    assert result.passed, result.message


@pytest.mark.parametrize("name", ["torch-ddp", "jax", "tensorflow"])
def test_a_study_runs_on_two_nodes(name, slurm_box):
    """Also if the name of the host resolves to a loopback address, as here."""
    try:
        check_runnable(framework(name))
    except PacelineError as error:
        pytest.skip(error.message)
    study = Study("resnet20", name, batch=2, processes="2x1", launches=2, steps=2, launcher="slurm")
    launches = study.run().launches
    assert [launch.status for launch in launches] == [Status.FINISHED] * 2
    for launch in launches:
        assert len(set(launch.outcome.facts["rank_hosts"])) == 2
        assert set(launch.outcome.facts["rank_hosts"]) <= {"n1", "n2", "n3", "n4"}


def test_an_array_of_prepared_launches_is_collected(slurm_box, tmp_path):
    study = Study(
        "resnet20", batch=2, processes="2x1", launches=2, steps=2, launcher="slurm", name="a"
    )
    (script,), count = study.prepare(tmp_path / "prepared")
    assert count == 2
    subprocess.run(["sbatch", "--wait", script], check=True, timeout=120)
    collected, waiting = Study.collect(tmp_path / "prepared")
    assert waiting == 0
    assert [one.status for one in collected.launches] == [Status.FINISHED] * 2
    again, _ = Study.collect(tmp_path / "prepared")
    assert len(again.launches) == 2


def test_a_study_inside_an_allocation_runs_as_its_steps(slurm_box, tmp_path):
    arguments = ["measure", "--model", "resnet20", "--batch", "2", "-j", "2x1", "--launches", "2"]
    arguments += ["--steps", "2", "--launcher", "slurm", "--study", "inside", "--store", "s.db"]
    command = ["salloc", "-N2", "-n2", sys.executable, "-m", "paceline", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    with Store(tmp_path / "s.db") as store:
        launches = store.launches("inside")
    assert [launch.status for launch in launches] == [Status.FINISHED] * 2
    assert not list((tmp_path / "launches").glob("*/launch.sbatch"))


def test_invalid_option_fails_with_the_message_of_slurm(slurm_box, tmp_path):
    starter = launcher("slurm", LaunchSettings((), {"constraint": "quantum"}))
    request = LaunchRequest(lambda rank: (sys.executable, "-c", "pass"), tmp_path, 60.0, 2)
    assert starter.launch(request).reason == "no node of the partition has the constraint"


def test_a_queue_without_end_is_left_in_time(slurm_box, tmp_path):
    starter = launcher("slurm", LaunchSettings((), {"queue": "2s", "sbatch": "--begin=now+1hour"}))
    request = LaunchRequest(lambda rank: (sys.executable, "-c", "pass"), tmp_path, 60.0)
    assert "timed out after 2 s in the queue: Slurm job" in starter.launch(request).reason
    time.sleep(1.0)
    assert subprocess.check_output(["squeue", "-h"], text=True) == ""


def test_a_node_that_cannot_reach_rank_0_is_named_within_the_time(tmp_path_factory, tmp_path):
    """In a box of its own: traffic between two of its nodes is dropped."""
    arguments = (sys.executable, "-c", "pass")
    with running_box(tmp_path_factory.mktemp("parted"), os.environ) as parted:
        assert box("drop", parted, "n2", "n1").returncode == 0
        ended = launcher("slurm").launch(LaunchRequest(lambda rank: arguments, tmp_path, 30.0, 2))
    assert ended.reason.startswith("host n2: cannot reach rank 0 at ")
    assert "host n1: rank 1 did not reach" in ended.reason


def test_a_launch_whose_node_dies_begins_again_on_others(slurm_box, tmp_path):
    """The last test: a node of the box is dead after it."""
    script = "import time; print('here', flush=True); time.sleep(6)"
    arguments = (sys.executable, "-c", script)
    killed = []

    def kill():
        path = tmp_path / "rank-1.host.json"
        while not path.exists():
            time.sleep(0.1)
        killed.append(json.loads(path.read_text())["host"])
        box("kill", slurm_box, killed[0])

    thread = threading.Thread(target=kill, daemon=True)
    thread.start()
    ended = launcher("slurm").launch(LaunchRequest(lambda rank: arguments, tmp_path, 120.0, 2))
    thread.join()
    assert not ended.reason
    assert ended.restarts == 1
    assert killed[0] not in {rank.host for rank in ended.ranks}
    assert [rank.code for rank in ended.ranks] == [0, 0]
