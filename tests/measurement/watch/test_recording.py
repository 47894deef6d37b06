"""``paceline.record`` in a script of any framework."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import paceline
from paceline.errors import InputError
from paceline.step import Phase, breakdown
from paceline.store import Launch, Status, Store, default_store_path

SCRIPT = str(Path(__file__).parents[2] / "fixtures" / "scripts" / "recorded.py")


def launches() -> list[Launch]:
    with Store(default_store_path(), create=False) as store:
        return store.launches()


def test_three_lines_make_a_launch():
    subprocess.run([sys.executable, SCRIPT, "12"], check=True)
    (launch,) = launches()
    assert (launch.status, launch.study, launch.model) == (Status.FINISHED, "by-hand", "sleeper")
    assert (launch.world_size, launch.batch_per_rank) == (1, 4)
    assert len(launch.outcome.ranks[0].wall_seconds) == 12
    assert launch.outcome.timeline is not None
    found = breakdown(launch.outcome.timeline).exposed
    assert found[Phase.BACKWARD] > found[Phase.FORWARD] > found[Phase.UPDATE] / 2


def test_ranks_of_one_job_make_one_launch():
    ranks = [
        subprocess.Popen(
            [sys.executable, SCRIPT, "8"],
            env={**os.environ, "RANK": str(rank), "WORLD_SIZE": "2", "MASTER_PORT": "29999"},
        )
        for rank in (1, 0)
    ]
    assert [process.wait(60) for process in ranks] == [0, 0]
    (launch,) = launches()
    assert launch.world_size == 2
    assert [len(rank.wall_seconds) for rank in launch.outcome.ranks] == [8, 8]


def test_an_exception_in_the_block_is_recorded_and_goes_on():
    answer = subprocess.run([sys.executable, SCRIPT, "12", "burst"], capture_output=True, text=True)
    assert answer.returncode == 1
    assert "RuntimeError: burst" in answer.stderr
    (launch,) = launches()
    assert launch.status is Status.FAILED
    assert "burst" in launch.outcome.reason
    assert len(launch.outcome.ranks[0].wall_seconds) == 5


def test_a_block_without_steps_says_so():
    with paceline.record(model="idle"):
        pass
    (launch,) = launches()
    assert launch.status is Status.FAILED
    assert "r.step() never ran" in launch.outcome.reason


def test_mistakes_are_errors_for_the_user():
    with pytest.raises(InputError, match="batch"):
        paceline.record(batch=0)
    with paceline.record() as recording, pytest.raises(InputError, match="phase"):
        recording.phase("lunch").__enter__()
