"""Every mistake of ``wrong_invocations.txt``: a line that says it, a hint, exit code 2, at once."""

import errno
import os
import random
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from builders import a_launch, an_outcome

from attack.nasty import HANG_SECONDS
from paceline.cli.main import main
from paceline.store import Status, Store

TABLE = Path(__file__).with_name("wrong_invocations.txt").read_text().splitlines()
MISTAKES = [tuple(line.split(" | ", 1)) for line in TABLE if not line.startswith("#")]
SLOW = """\
[device.d]
kind = "gpu"
memory = "24 GB"
memory_bandwidth = "900 GB/s"
peak_flops = { fp32 = 15 }
[cluster.c]
device = "d"
nodes = 1
devices_per_node = 1
"""
FILES = {
    "config.json": "[[[[",
    "deep.json": "[" * 100_000,
    "lab.toml": "x = 1\n",
    "empty.toml": "",
    "empty.db": "",
    "text.txt": "hello\n" * 20,
    "wrong.csv": "a,b\n1,2\n",
    "net.py": "x = 1\n",
    "t.toml": "cluster = 3\n",
    "slow.toml": SLOW,
}


@pytest.fixture
def folder(tmp_path):
    """Where a user makes mistakes: some files, and a store with a study 's'."""
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    for name in ("fifo", "fifo.onnx", "fifo.toml"):
        os.mkfifo(tmp_path / name)
    with Store(tmp_path / ".paceline" / "paceline.db") as store:
        store.complete(a_launch("a1", study="s", outcome=an_outcome()))
    return tmp_path


@pytest.fixture
def called(monkeypatch, capsys):
    """Exit code and standard error of a command line, in this process."""
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}

    def call(line):
        monkeypatch.setattr(sys, "argv", ["paceline", *shlex.split(line)])
        capsys.readouterr()
        try:
            code = main() or 0
        except SystemExit as ended:
            code = ended.code
        return code, capsys.readouterr().err

    yield call
    for number, handler in handlers.items():
        signal.signal(number, handler)
    signal.signal(signal.SIGINT, signal.default_int_handler)


def studies(folder):
    """What is there: files of the user's, and launches but of ``run``, which fail by being run."""
    with Store(folder / ".paceline" / "paceline.db") as store:
        measured = [one.id for one in store.launches() if "command" not in one.job]
    return sorted(folder.iterdir()), measured


def test_there_are_mistakes_enough():
    assert len(MISTAKES) >= 150
    assert len({line for line, _ in MISTAKES}) == len(MISTAKES)


def test_mistakes_are_one_line_and_a_hint(folder, called, size):
    order = list(MISTAKES)
    random.Random(0).shuffle(order)
    before = studies(folder)
    wrong = []
    for line, words in order[: size(50, len(order))]:
        code, said = called(line)
        if code != 2 or f"error: {words}" not in said or "hint: " not in said:
            wrong.append(f"{line}: exit code {code}, {said}")
    assert not wrong, "\n".join(wrong)
    assert studies(folder) == before, "a mistake left a study or a file behind"


@pytest.mark.parametrize("processes", ["dp", "mp", "dp,dp"])
def test_one_way_of_a_sweep_is_shown(processes, capsys, monkeypatch):
    line = "sweep --model fcn5 --batch 64 --cluster dgx-1 --axis nodes=1..4 --compare"
    monkeypatch.setattr(sys, "argv", ["paceline", *line.split(), processes])
    main()
    assert "nodes" in capsys.readouterr().out


def paceline(*words, **options):
    environment = {**os.environ, **options.pop("environment", {})}
    return subprocess.run(
        [sys.executable, "-m", "paceline", *words], env=environment, timeout=HANG_SECONDS, **options
    )


def test_a_terminal_of_no_columns_shows_tables_all_the_same():
    answer = paceline(
        "catalog", "models", "llama", environment={"COLUMNS": "0"}, capture_output=True
    )
    assert b"llama3_8b" in answer.stdout


@pytest.mark.parametrize("variables", [{"PYTHONIOENCODING": "iso-8859-1"}, {"LC_ALL": "C"}])
def test_a_locale_without_our_characters_loses_only_these(variables):
    environment = {"PYTHONUTF8": "0", **variables}
    answer = paceline("doctor", environment=environment, capture_output=True)
    assert answer.returncode == 0, answer.stderr
    assert b"Traceback" not in answer.stderr


def code_with_closed(streams, *words):
    line = f"{shlex.join([sys.executable, '-m', 'paceline', *words])} {streams}"
    return subprocess.run(line, shell=True, capture_output=True, timeout=HANG_SECONDS).returncode


@pytest.mark.parametrize("streams", [">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_do_not_change_the_exit_code(streams):
    assert code_with_closed(streams, "catalog", "models") == 0
    assert code_with_closed(streams, "catalog", "models", "--nope") == 2


def test_a_launch_is_recorded_though_streams_are_closed(tmp_path):
    job = [
        "measure",
        "--model",
        "fcn5",
        "--batch",
        "2",
        "--steps",
        "1",
        "--launches",
        "1",
        "--store",
    ]
    assert code_with_closed("<&- >&- 2>&-", *job, f"{tmp_path}/s.db") == 0
    with Store(tmp_path / "s.db", create=False) as store:
        assert [one.status for one in store.launches()] == [Status.FINISHED]


def test_a_name_that_is_too_long_is_one_line(folder, called):
    for line in ("study list --store {}", "import {}", "inspect {}.onnx", "measure --dry-run {}"):
        code, said = called(line.format("A" * 5000))
        assert code == 2
        assert said.startswith("error: cannot ")
        assert "File name too long" in said


def test_a_file_in_a_directory_without_permission_is_one_line(called, monkeypatch):
    def stat(path, **options):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    monkeypatch.setattr(Path, "stat", stat)
    for line in ("study list --store a/s.db", "import a/x.log", "inspect a/x.onnx"):
        code, said = called(line)
        assert code == 2
        assert said.startswith("error: cannot ")
        assert "Permission denied" in said


def test_a_full_disk_behind_standard_output_is_one_line():
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("needs /dev/full")
    with full.open("wb") as output:
        answer = paceline("catalog", "models", "--json", stdout=output, stderr=subprocess.PIPE)
    assert answer.returncode == 1
    assert answer.stderr == b"error: cannot write: No space left on device\n"


def test_a_reader_that_goes_away_ends_as_in_a_shell():
    process = subprocess.Popen(
        [sys.executable, "-m", "paceline", "catalog", "models"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    said = process.stderr.read()
    assert (process.wait(timeout=HANG_SECONDS), said) == (128 + signal.SIGPIPE, b"")


def test_a_demo_that_cannot_be_made_leaves_nothing(tmp_path, called):
    assert called("demo --model nope")[0] == 2
    assert not list(tmp_path.iterdir())
