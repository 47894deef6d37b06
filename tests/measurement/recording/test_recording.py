"""``paceline.record`` in a script of any framework."""

import os
import subprocess
import sys
import time
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


def run_job(steps: str, expected: list[int], *options: str) -> None:
    """Two ranks that meet at one port."""
    ranks = [
        subprocess.Popen(
            [sys.executable, SCRIPT, steps, *(options if rank else ())],
            env={
                **os.environ,
                "RANK": str(rank),
                "WORLD_SIZE": "2",
                "MASTER_PORT": "29999",
            },
            stderr=subprocess.DEVNULL,
        )
        for rank in (1, 0)
    ]
    assert [process.wait(60) for process in ranks] == expected


def test_two_jobs_on_one_port_keep_their_own_steps():
    for steps in ("20", "8"):
        run_job(steps, [0, 0])
    counts = [[len(rank.wall_seconds) for rank in one.outcome.ranks] for one in launches()]
    assert counts == [[20, 20], [8, 8]]


def test_a_rank_that_dies_before_its_first_step_fails_the_launch():
    run_job("12", [1, 0], "at-once")
    (launch,) = launches()
    assert launch.status is Status.FAILED
    assert "rank 1 took no step" in launch.outcome.reason


def test_a_clock_that_is_set_back_loses_no_step(monkeypatch: pytest.MonkeyPatch):
    with paceline.record(model="clock") as recording:
        for number in range(5):
            if number == 2:
                monkeypatch.setattr(time, "time", lambda: 86_400.0)
            recording.step()
    (launch,) = launches()
    assert launch.status is Status.FINISHED
    assert len(launch.outcome.ranks[0].wall_seconds) == 5


class Tensor:
    """What a framework's tensor of one element is to us."""

    def __init__(self, value: float) -> None:
        self.value = value

    def detach(self) -> "Tensor":
        return self

    def __float__(self) -> float:
        return self.value


@pytest.mark.parametrize("loss", [Tensor(0.5), Tensor(float("nan")), "no number", object()])
def test_a_loss_of_any_kind_loses_no_step(loss: object):
    with paceline.record(model="lossy") as recording:
        for _ in range(4):
            recording.step(loss=loss)
    (launch,) = launches()
    assert launch.status is Status.FINISHED
    assert len(launch.outcome.ranks[0].wall_seconds) == 4


def test_exception_in_the_block_is_recorded_and_raised():
    answer = subprocess.run([sys.executable, SCRIPT, "12", "burst"], capture_output=True, text=True)
    assert answer.returncode == 1
    assert "RuntimeError: burst" in answer.stderr
    (launch,) = launches()
    assert launch.status is Status.FAILED
    assert "burst" in launch.outcome.reason
    assert len(launch.outcome.ranks[0].wall_seconds) == 5


def test_block_without_steps_gives_a_warning():
    with paceline.record(model="idle"):
        pass
    (launch,) = launches()
    assert launch.status is Status.FAILED
    assert "r.step() was never called" in launch.outcome.reason


def test_mistakes_are_errors_for_the_user():
    with pytest.raises(InputError, match="batch"):
        paceline.record(batch=0)
    with paceline.record() as recording, pytest.raises(InputError, match="phase"):
        recording.phase("lunch").__enter__()
