"""Killed at any moment: nothing lost, nothing doubled, nothing left running.

With --all 350 kills over measure, run and record (and compare, with PyTorch), at least 100 of them
while finished launches are in the store; each run of CI makes the first few of them.
"""

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import psutil
import pytest

from attack.nasty import HANG_SECONDS
from paceline.store import Status, Store

VICTIMS = Path(__file__).with_name("victims.py")
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
ORPHAN_SECONDS = 10.0


def start(kind: str, store: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, str(VICTIMS), kind, str(store)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def kill_somewhen(
    rng: random.Random, kind: str, store: Path, longest: float, launches: int = 0
) -> bool:
    """Whether it still ran when the signal came; one in four gets a second signal.

    The signal comes up to ``longest`` seconds after ``launches`` have finished.
    """
    process = start(kind, store)
    end = time.monotonic() + HANG_SECONDS
    while process.poll() is None and len(finished(store)) < launches and time.monotonic() < end:
        time.sleep(0.1)
    try:
        process.wait(timeout=rng.uniform(0.05, longest))
        return False
    except subprocess.TimeoutExpired:
        pass
    process.send_signal(rng.choice(SIGNALS))
    if rng.random() < 0.25:
        time.sleep(rng.uniform(0.0, 0.2))
        process.send_signal(rng.choice(SIGNALS))
    process.wait(timeout=HANG_SECONDS)
    return True


def alive(folder: Path) -> list[str]:
    """Processes that were started with a path of the test among their words."""
    found = []
    for process in psutil.process_iter(["cmdline", "status", "pid"]):
        words = process.info["cmdline"] or []
        if process.info["status"] != psutil.STATUS_ZOMBIE and any(
            str(folder) in word for word in words
        ):
            found.append(f"{process.info['pid']}: {' '.join(words)[:100]}")
    return found


def check_nobody_is_left(folder: Path) -> None:
    end = time.monotonic() + ORPHAN_SECONDS
    while left := alive(folder):
        assert time.monotonic() < end, f"left running: {left}"
        time.sleep(0.1)


def check_whole(store: Path) -> None:
    connection = sqlite3.connect(store)
    assert connection.execute("PRAGMA integrity_check").fetchone()[0] == "ok"
    connection.close()


def finished(store: Path) -> set[str]:
    if not store.exists() or store.stat().st_size == 0:
        return set()
    with Store(store) as opened:
        return {one.id for one in opened.launches() if one.status is Status.FINISHED}


def test_a_study_that_is_killed_loses_and_doubles_nothing(size, tmp_path):
    """Each study is killed and resumed until it is done: every position finished exactly once."""
    rng, kills, studies, with_finished = random.Random(0), 0, 0, 0
    while kills < size(6, 220):
        folder = tmp_path / f"study-{studies}"
        folder.mkdir()
        store, known, studies = folder / "store.db", set(), studies + 1
        for _ in range(12):
            # On a busy machine no launch ends in 2.5 s, so half of the kills wait for one more.
            killed = kill_somewhen(rng, "measure", store, 2.5, rng.choice((0, len(known) + 1)))
            with_finished += killed and bool(known)
            check_nobody_is_left(folder)
            now = finished(store)
            assert known <= now, "a finished launch was lost"
            known = now
            kills += killed
            if not killed and store.exists():
                break
        assert start("measure", store).wait(timeout=HANG_SECONDS) == 0
        check_whole(store)
        with Store(store) as opened:
            launches = opened.launches("study")
        done = [one for one in launches if one.status is Status.FINISHED]
        assert Counter(one.job["position"] for one in done) == Counter(range(8))
        assert all(one.status is not Status.RUNNING for one in launches)
    print(f"{kills} kills, {with_finished} with finished launches in the store")
    assert with_finished >= size(0, 100)


@pytest.mark.parametrize("kind", ["run", "record"])
def test_a_script_that_is_killed_leaves_nothing_running(kind, size, tmp_path):
    """Also its child in a session of its own; the store stays whole and readable."""
    rng = random.Random(1)
    store, kills, known = tmp_path / "store.db", 0, set()
    wanted = size(4, 70) if kind == "run" else size(3, 50)
    while kills < wanted:
        kills += kill_somewhen(rng, kind, store, 2.5)
        if kind == "run":
            check_nobody_is_left(tmp_path)
        now = finished(store)
        assert known <= now
        known = now
    assert start(kind, store).wait(timeout=HANG_SECONDS) == 0
    check_whole(store)
    with Store(store) as opened:
        launches = opened.launches()
    assert launches[-1].status is Status.FINISHED
    assert len(launches[-1].outcome.ranks[0].wall_seconds) == 60
    assert all(one.status is not Status.RUNNING for one in launches)
    assert len({one.id for one in launches}) == len(launches)


@pytest.mark.slow
@pytest.mark.torch
def test_a_comparison_that_is_killed_leaves_nothing_running(size, tmp_path):
    pytest.importorskip("torch")
    rng, store = random.Random(2), tmp_path / "store.db"
    words = ["measure", "--framework", "torch-ddp,torch-fsdp", "--model", "fcn5", "--batch", "2"]
    words += ["--steps", "2", "--launches", "2", "--store", str(store)]
    for number in range(size(2, 10)):
        process = subprocess.Popen(
            [sys.executable, "-m", "paceline", *words, "--study", f"c{number}"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        time.sleep(rng.uniform(1.0, 12.0))
        process.send_signal(rng.choice(SIGNALS))
        process.wait(timeout=HANG_SECONDS)
        check_nobody_is_left(tmp_path)
    if store.exists():
        check_whole(store)


def test_a_study_that_is_resumed_twice_at_once_is_run_once(tmp_path):
    store = tmp_path / "store.db"
    both = [start("measure", store) for _ in range(2)]
    codes = sorted(process.wait(timeout=HANG_SECONDS) for process in both)
    assert codes in ([0, 1], [0, 0])  # refused, or begun when the other was done
    with Store(store) as opened:
        positions = [one.job["position"] for one in opened.launches("study")]
    assert sorted(positions) == list(range(8))


def test_output_that_cannot_be_written_stops_nothing(tmp_path):
    """On a disk that is full the script runs to its end all the same."""
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("needs /dev/full")
    code = "for line in range(20_000): print('a line of some fifty characters, again')"
    words = [sys.executable, "-m", "paceline", "run", "--store", str(tmp_path / "s.db"), "--"]
    with full.open("wb") as output:
        answer = subprocess.run(
            [*words, sys.executable, "-c", code], stdout=output, stderr=output, timeout=HANG_SECONDS
        )
    assert answer.returncode == 1
    with Store(tmp_path / "s.db") as opened:
        (launch,) = opened.launches()
    assert launch.outcome.facts["exit_codes"] == [0]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_worker_that_still_imports_ends_with_paceline(tmp_path, number):
    """The guard ends it: it need not have come so far as to watch its parent."""
    code = (
        "import sys, time\nfrom paceline.launch import LaunchRequest, LocalLauncher\n"
        "from pathlib import Path\n"
        "words = [sys.executable, '-c', 'import time; time.sleep(600)', sys.argv[1]]\n"
        "print('begun', flush=True)\n"
        "LocalLauncher().launch(LaunchRequest(lambda rank: words, Path(sys.argv[1]), 600.0))\n"
    )
    paceline = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert paceline.stdout is not None
    paceline.stdout.readline()
    end = time.monotonic() + 30
    while len(alive(tmp_path)) < 3 and time.monotonic() < end:  # paceline, the guard, the worker
        time.sleep(0.05)
    os.kill(paceline.pid, number)
    paceline.wait(timeout=30)
    check_nobody_is_left(tmp_path)
