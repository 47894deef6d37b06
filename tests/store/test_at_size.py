"""Commands read only the rows they show, and readers do not write."""

import os
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from builders import a_launch, an_outcome

from commandline import run
from paceline.errors import InputError, PacelineWarning, StoreError
from paceline.store import Outcome, Status, Store, database
from paceline.store.rows import OWNER_ENDED, launch_of

LAUNCHES = 300


@pytest.fixture
def path(tmp_path):
    """Many launches, in studies of ten."""
    path = tmp_path / "store.db"
    with Store(path) as store:
        store._connection.execute("PRAGMA synchronous = OFF")
        for number in range(LAUNCHES):
            study = f"s{number // 10}"
            store.complete(a_launch(f"{number:06}", study=study, outcome=an_outcome()))
    return path


@pytest.fixture
def read(monkeypatch):
    """Ids of the launches that were read whole."""
    ids = []
    monkeypatch.setattr(
        database, "launch_of", lambda row, alive: ids.append(row[0]) or launch_of(row, alive)
    )
    return ids


@pytest.mark.parametrize(
    ("line", "most"),
    [
        ("study list --launches", 40),
        ("study list --launches --last 5 --json", 5),
        ("study show s7", 10),
        ("study show 000123", 1),
        ("study export s7.csv --study s7", 10),
    ],
)
def test_a_command_reads_no_more_than_it_shows(path, read, line, most):
    run([*line.split(), "--store", path])
    assert 0 < len(read) <= most


def test_open_launches_are_found_without_reading_the_rest(path, read):
    with Store(path) as store:
        store.start(a_launch("open"))
        assert store.abandoned() == []
    assert read == ["open"]


def test_newest_launches_are_in_order_of_their_start(path):
    with Store(path, create=False) as store:
        assert [one.id for one in store.launches(newest=3)] == ["000297", "000298", "000299"]
        assert [one.id for one in store.launches("s2", newest=2)] == ["000028", "000029"]
        assert (store.count(), store.count("s2"), store.count("none")) == (LAUNCHES, 10, 0)


@pytest.mark.parametrize("table", ["launches", "steps", "layers"])
def test_exports_of_both_formats_have_the_same_rows(path, table, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    for ending in ("csv", "parquet"):
        run(["study", "export", f"out.{ending}", "--table", table, "--store", path])
    rows = (tmp_path / "out.csv").read_text().splitlines()
    found = parquet.read_table(tmp_path / "out.parquet")
    assert found.num_rows == len(rows) - 1 > 0
    assert found.column_names == rows[0].split(",")


class TestReaders:
    def test_a_reader_leaves_the_file_as_it_was(self, path):
        before = path.read_bytes()
        studies = ("study list", "study show 000123", "study export out.csv")
        for line in (*studies, "report s3 --out page.html"):
            run([*line.split(), "--store", path])
        assert path.read_bytes() == before

    def test_a_store_in_a_directory_that_cannot_be_written_to_is_read(self, path, tmp_path):
        """As another user, since root may write anywhere."""
        if os.geteuid() != 0:
            path.parent.chmod(0o500)
        path.chmod(0o444)
        code = (
            "import os, sys\n"
            "from pathlib import Path\n"
            "from paceline.store import Store\n"
            "if os.geteuid() == 0: os.setuid(65534)\n"
            "with Store(Path(sys.argv[1]), create=False) as store:\n"
            "    print(len(store.launches('s3')), store.count())\n"
        )
        for folder in [tmp_path, *tmp_path.parents][:4]:
            folder.chmod(folder.stat().st_mode | 0o055)
        answer = subprocess.run(
            [sys.executable, "-c", code, str(path)], capture_output=True, text=True
        )
        assert answer.stdout.split() == ["10", str(LAUNCHES)], answer.stderr

    def test_an_empty_file_is_no_store_and_stays_empty(self, tmp_path):
        empty = tmp_path / "empty.db"
        empty.touch()
        with pytest.raises(StoreError, match="is empty, not a store"):
            Store(empty, create=False)
        assert empty.read_bytes() == b""

    def test_created_files_are_readable_by_the_user_only(self, path):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        with Store(path) as store:
            store.start(a_launch("mine"))
            assert stat.S_IMODE(Path(path.parent / "owners").stat().st_mode) == 0o700


DAMAGE = {
    "result": ("outcomes", "result", "{"),
    "no object": ("outcomes", "result", "[]"),
    "deep": ("outcomes", "result", "[" * 100_000),
    "ranks": ("outcomes", "result", '{"ranks": 3, "layers": [], "timeline": null, "facts": {}}'),
    "status": ("outcomes", "status", "splendid"),
    "job": ("launches", "job", "[]"),
    "position": ("launches", "job", '{"position": "first"}'),
    "environment": ("launches", "environment", "nonsense"),
    "size": ("launches", "world_size", "many"),
    "no ranks": ("launches", "world_size", 0),
    "batch": ("launches", "batch_per_rank", -1),
    "blob": ("launches", "model", b"\xff\x00"),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_one_damaged_row_is_named_and_skipped(path, kind):
    table, column, value = DAMAGE[kind]
    key = "id" if table == "launches" else "launch_id"
    with sqlite3.connect(path) as connection:
        connection.execute(f"UPDATE {table} SET {column} = ? WHERE {key} = '000033'", (value,))
    connection.close()
    with Store(path, create=False) as store, pytest.warns(PacelineWarning, match="launch 000033"):
        found = {launch.id for launch in store.study("s3")}
    assert found == {f"00003{digit}" for digit in range(10)} - {"000033"}


class TestOneRunner:
    def test_a_second_runner_of_a_study_is_refused(self, tmp_path):
        with Store(tmp_path / "a.db") as first, Store(tmp_path / "a.db") as second:
            with first.locked_study("s"):
                with pytest.raises(InputError, match=f"by process {os.getpid()}"):
                    second.locked_study("s").__enter__()
                with second.locked_study("other"):
                    pass
            with second.locked_study("s"):
                pass
        assert not list((tmp_path / "owners").iterdir())

    def test_a_finish_counts_more_than_an_assumed_end(self, tmp_path):
        """The owner was assumed dead; its own outcome replaces the assumption."""
        with Store(tmp_path / "a.db") as store:
            store.start(a_launch())
            store.finish("a1", Outcome(Status.INTERRUPTED, "then", OWNER_ENDED))
            store.finish("a1", an_outcome())
            assert store.launch("a1").status is Status.FINISHED

    def test_an_owner_lives_by_its_lock_not_by_clock_or_host_name(self, tmp_path, monkeypatch):
        with Store(tmp_path / "a.db") as owner, Store(tmp_path / "a.db") as other:
            owner.start(a_launch())
            monkeypatch.setattr("platform.node", lambda: "renamed")
            monkeypatch.setattr("time.time", lambda: 0.0)
            assert other.launch("a1").status is Status.RUNNING
            assert other.abandoned() == []
        with Store(tmp_path / "a.db") as later:
            assert later.launch("a1").status is Status.INTERRUPTED
            assert [one.id for one in later.abandoned()] == ["a1"]
