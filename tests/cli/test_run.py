"""``paceline run`` in a process; scripts without a framework, so that it is quick."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from paceline.store import Launch, Status, Store, default_store_path

FIXTURES = Path(__file__).parents[1] / "fixtures"
RECORDED = str(FIXTURES / "scripts" / "recorded.py")


def paceline(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "paceline", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def launches() -> list[Launch]:
    with Store(default_store_path(), create=False) as store:
        return store.launches()


def test_a_recording_script_under_run_makes_one_launch():
    """What the script says of itself (model, batch) counts; what the user says counts more."""
    answer = paceline("run", "--", sys.executable, RECORDED, 12)
    assert answer.returncode == 0, answer.stderr
    assert "backward" in answer.stdout
    (launch,) = launches()
    assert (launch.status, launch.model, launch.batch_per_rank) == (Status.FINISHED, "sleeper", 4)
    paceline("run", "--batch", 8, "--model", "mine", "--", sys.executable, RECORDED, 12)
    assert (launches()[1].model, launches()[1].batch_per_rank) == ("mine", 8)
    assert len(launch.outcome.ranks[0].wall_seconds) == 12


def test_a_command_can_be_repeated():
    answer = paceline("run", "--repeat", 2, "--batch", 4, "--", sys.executable, RECORDED, 6)
    assert answer.returncode == 0, answer.stderr
    assert [launch.status for launch in launches()] == [Status.FINISHED] * 2


def test_repeating_ends_with_the_first_failure():
    answer = paceline("run", "--repeat", 3, "--", sys.executable, "-c", "raise SystemExit(3)")
    assert answer.returncode == 3
    assert len(launches()) == 1


SPEAKING = "import sys; print('result', flush=True); print('progress', file=sys.stderr)"


def test_stdout_and_stderr_of_the_command_are_passed_on_and_kept():
    answer = paceline("run", "--", sys.executable, "-c", SPEAKING)
    assert answer.returncode == 1
    assert answer.stdout == "result\n"
    assert "progress\n" in answer.stderr
    assert "result" not in answer.stderr
    (launch,) = launches()
    log = default_store_path().parent / "launches" / launch.id / "output.log"
    assert sorted(log.read_text().split()) == ["progress", "result"]


def test_with_json_the_output_of_the_command_goes_to_stderr():
    answer = paceline("run", "--json", "--", sys.executable, "-c", SPEAKING)
    assert json.loads(answer.stdout)["status"] == "failed"
    assert "result\n" in answer.stderr
    assert "progress\n" in answer.stderr


def test_a_recipe_is_run_and_its_log_read():
    log = FIXTURES / "logs" / "caffe_train_recorded.log"
    answer = paceline(
        "run", "--recipe", "mlperf", "--set", f"submission_command=cat {log}",
        "--program", "caffe", "--json",
    )  # fmt: skip
    assert answer.returncode == 0, answer.stderr
    document = json.loads(answer.stdout)
    assert document["framework"] == "caffe"
    assert document["throughput_samples_per_second"] == pytest.approx(32 * 8 / 4.247)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run"], "missing command"),
        (["run", "--recipe", "pydtnn"], "missing value of"),
        (["run", "--recipe", "pydtn"], "no recipe named"),
        (["run", "--program", "cafe", "--", "true"], "no log reader named"),
        (["run", "--", "no-such-program"], "cannot run 'no-such-program'"),
        (["run", "--timeout", "soon", "--", "true"], "not a duration"),
    ],
)
def test_mistakes_end_with_a_line_and_a_hint(arguments: list[str], message: str):
    answer = paceline(*arguments)
    assert answer.returncode == 2
    assert message in answer.stderr
    assert "hint:" in answer.stderr
    assert "Traceback" not in answer.stderr


def test_a_reader_that_goes_away_does_not_stop_the_command():
    """As in ``paceline run ... | head``: nobody reads, a megabyte is printed all the same."""
    script = "for line in range(20_000): print('a line of some fifty characters, again and again')"
    command = [sys.executable, "-m", "paceline", "run", "--", sys.executable, "-c", script]
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.close()
    process.wait(timeout=60)
    (log,) = (default_store_path().parent / "launches").glob("*/output.log")
    assert len(log.read_text().splitlines()) == 20_000


@pytest.mark.parametrize(
    ("script", "code", "reason"),
    [
        ("raise SystemExit(7)", 7, "the command ended with code 7"),
        ("import os; os.kill(os.getpid(), 11)", 139, "the command was killed by SIGSEGV"),
        ("pass", 1, "no process stepped"),
    ],
)
def test_the_exit_code_is_passed_on(script: str, code: int, reason: str):
    answer = paceline("run", "--", sys.executable, "-c", script)
    assert answer.returncode == code
    assert reason in answer.stderr


def test_a_script_that_leaves_by_exit_has_finished(tmp_path: Path):
    script = tmp_path / "leaves.py"
    script.write_text(
        "import os, time, paceline\n"
        "with paceline.record(batch=1) as r:\n"
        "    for _ in range(30):\n        time.sleep(0.05); r.step()\n"
        "    os._exit(0)\n"
    )
    answer = paceline("run", "--", sys.executable, script)
    assert answer.returncode == 0, answer.stderr
    (launch,) = launches()
    assert launch.status is Status.FINISHED
    assert "exited without closing its record" in " ".join(launch.outcome.facts["notes"])


def test_a_signal_for_the_script_reaches_it():
    """As Slurm's warning before the time limit: it must not end Paceline."""
    script = (
        "import os, signal, sys, time\n"
        "signal.signal(signal.SIGUSR1, lambda *_: sys.exit(5))\n"
        "print('ready', flush=True)\n"
        "time.sleep(60)\n"
    )
    command = [sys.executable, "-m", "paceline", "run", "--", sys.executable, "-c", script]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert "ready" in process.stdout.readline()
    process.send_signal(signal.SIGUSR1)
    process.communicate(timeout=60)
    assert process.returncode == 5


def steps_written(launched: Path) -> int:
    return sum(path.read_text().count('"step_seconds"') for path in launched.glob("*/process-*"))


def test_an_interrupt_keeps_the_steps_so_far():
    command = [sys.executable, "-m", "paceline", "run", "--", sys.executable, RECORDED, "10000"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    launched = default_store_path().parent / "launches"
    deadline = time.monotonic() + 60
    while steps_written(launched) <= 10 and time.monotonic() < deadline:
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 130
    assert stderr.endswith("interrupted from the keyboard; results so far are kept\n")
    (launch,) = launches()
    assert launch.status is Status.INTERRUPTED
    assert len(launch.outcome.ranks[0].wall_seconds) > 10
