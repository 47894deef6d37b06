import os
import platform
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from builders import a_launch, an_outcome

from paceline.errors import StoreError
from paceline.store import Outcome, Status, Store
from paceline.store.owner import owner_is_alive


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path / "deep" / "store.db") as opened:
        yield opened


def test_finished_launch_round_trips(store):
    store.start(a_launch())
    store.finish("a1", an_outcome())
    (launch,) = Store(store.path).launches()
    assert launch == a_launch(outcome=an_outcome())


def test_a_launch_of_this_process_is_running_until_it_has_an_outcome(store):
    store.start(a_launch())
    assert store.launch("a1").status is Status.RUNNING
    assert store.abandoned() == []


def test_the_first_outcome_counts(store):
    store.start(a_launch())
    store.finish("a1", an_outcome())
    store.finish("a1", Outcome(Status.FAILED, "later", "second thoughts"))
    assert store.launch("a1").status is Status.FINISHED


def test_complete_launch_can_be_replaced(store):
    store.start(a_launch(world_size=1))
    store.start(a_launch("later"))
    store.complete(a_launch(world_size=2, outcome=an_outcome()))
    assert store.launches()[0] == a_launch(world_size=2, outcome=an_outcome())


def test_a_launch_that_cannot_be_completed_stays_as_it_was(store):
    store.start(a_launch(world_size=1))
    with pytest.raises(StoreError):
        store.complete(a_launch(world_size=2, study=None, outcome=an_outcome()))
    assert store.launch("a1").world_size == 1
    store.complete(a_launch(world_size=2, outcome=an_outcome()))


def test_launches_of_a_dead_process_are_interrupted_and_then_marked(store):
    script = (
        "import sys; sys.path.insert(0, sys.argv[2])\n"
        "from pathlib import Path\n"
        "from builders import a_launch, an_outcome\n"
        "from paceline.store import Store\n"
        "store = Store(Path(sys.argv[1]))\n"
        "store.start(a_launch('kept')); store.finish('kept', an_outcome())\n"
        "store.start(a_launch('lost'))\n"
        "import os, signal; os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    here = str(Path(__file__).parents[1])
    subprocess.run([sys.executable, "-c", script, str(store.path), here], check=False)
    assert {launch.id: launch.status for launch in store.launches()} == {
        "kept": Status.FINISHED,
        "lost": Status.INTERRUPTED,
    }
    (lost,) = store.abandoned()
    assert lost.id == "lost"


def test_ids_may_be_shortened_until_they_are_ambiguous(store):
    for launch_id in ("abc1", "abd2"):
        store.start(a_launch(launch_id))
    assert store.launch("abd").id == "abd2"
    for prefix, message in (("ab", "2 launches begin"), ("x", "no launch begins")):
        with pytest.raises(StoreError, match=message):
            store.launch(prefix)


def test_profiles_are_kept_and_the_newest_is_read(store):
    assert store.latest_profile("m") is None
    store.save_profile("m", {"rate": 1})
    store.save_profile("m", {"rate": 2})
    assert store.latest_profile("m") == {"rate": 2}


def test_missing_store_is_an_error(tmp_path):
    with pytest.raises(StoreError, match="no store"):
        Store(tmp_path / "none.db", create=False)
    assert not (tmp_path / "none.db").exists()


def foreign(path):
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE theirs (x)")


def text(path):
    path.write_text("not a database at all, but long enough to be looked at as one" * 40)


def newer(path):
    Store(path).close()
    with sqlite3.connect(path) as future:
        future.execute("PRAGMA user_version = 99")


@pytest.mark.parametrize(
    ("make", "message"),
    [(foreign, "another program"), (text, "not a Paceline store"), (newer, "schema version 99")],
)
def test_a_foreign_file_is_refused_and_left_as_it_was(tmp_path, make, message):
    path = tmp_path / "x.db"
    make(path)
    before = path.read_bytes()
    with pytest.raises(StoreError, match=message) as caught:
        Store(path)
    assert caught.value.hint
    assert path.read_bytes() == before


@pytest.mark.parametrize("create", [True, False])
def test_only_a_regular_file_is_a_store(tmp_path, monkeypatch, create):
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe.db")
    for name, message in {
        "pipe.db": "it is a named pipe",
        "/dev/zero": "it is a device",
        ":memory:": "is not a file name",
        "file:x.db?mode=memory": "is not a file name",
    }.items():
        with pytest.raises(StoreError, match=message):
            Store(Path(name), create=create)
    assert [path.name for path in tmp_path.iterdir()] == ["pipe.db"]


def test_an_unwritable_directory_is_one_line(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("")
    with pytest.raises(StoreError, match="cannot open the store"):
        Store(blocked / "store.db")


@pytest.mark.slow
def test_killing_writers_at_random_loses_no_finished_launch(tmp_path):
    """Each writer prints an id only after `finish` returned; every printed id must be there."""
    script = (
        "import sys; sys.path.insert(0, sys.argv[2])\n"
        "from pathlib import Path\n"
        "from builders import a_launch, an_outcome\n"
        "from paceline.store import Store\n"
        "store = Store(Path(sys.argv[1]))\n"
        "for number in range(10_000):\n"
        "    name = f'{sys.argv[3]}-{number}'\n"
        "    store.start(a_launch(name)); store.finish(name, an_outcome())\n"
        "    print(name, flush=True)\n"
    )
    path, here = tmp_path / "store.db", str(Path(__file__).parents[1])
    acknowledged = []
    for attempt in range(20):
        writer = subprocess.Popen(
            [sys.executable, "-c", script, str(path), here, str(attempt)],
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(1 + attempt % 7):
            acknowledged.append(writer.stdout.readline().strip())
        os.kill(writer.pid, 9)
        acknowledged += [line for line in writer.stdout.read().splitlines() if line.count("-") == 1]
        writer.wait()
    with Store(path) as store:
        finished = {launch.id for launch in store.launches() if launch.status is Status.FINISHED}
        assert set(filter(None, acknowledged)) <= finished
        assert len(store.abandoned()) <= 20
        assert all(launch.status is not Status.RUNNING for launch in store.launches())


def test_a_process_that_ended_and_was_not_waited_for_owns_nothing(tmp_path):
    """In a container without an init process, a killed process stays as a zombie."""
    ended = subprocess.Popen([sys.executable, "-c", "pass"], stdout=subprocess.PIPE)
    mark = f"{platform.node()}:{ended.pid}:{psutil.Process(ended.pid).create_time():.3f}"
    ended.stdout.read()
    while psutil.Process(ended.pid).status() != psutil.STATUS_ZOMBIE:
        time.sleep(0.01)
    assert not owner_is_alive(mark, tmp_path)
    ended.wait()
