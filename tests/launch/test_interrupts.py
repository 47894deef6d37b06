"""An interrupt at any time ends a launch and all its processes."""

import os
import signal
import subprocess
import sys
import time

import psutil
import pytest

from paceline.interrupts import held_interrupts
from paceline.launch.processes import run_to_end, start_process

SLEEP = [sys.executable, "-c", "import time; time.sleep(60)"]


def started(log):
    with log.open("wb") as output:
        return subprocess.Popen(SLEEP, stdout=output, start_new_session=True)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_process_that_was_just_started_is_ended(tmp_path, number):
    """The signal arrives when only ``start`` has a handle of the process."""
    processes = []

    def start():
        processes.append(started(tmp_path / "log"))
        os.kill(os.getpid(), number)
        return processes[0]

    before = signal.getsignal(number)
    with pytest.raises(KeyboardInterrupt, match="interrupted"):
        run_to_end([start], [tmp_path / "log"], timeout_seconds=30)
    assert processes[0].returncode is not None
    assert signal.getsignal(number) is before


def test_nothing_more_is_started_after_an_interrupt(tmp_path):
    def start():
        os.kill(os.getpid(), signal.SIGINT)
        return started(tmp_path / "log")

    def never():
        raise AssertionError("started after the interrupt")

    with pytest.raises(KeyboardInterrupt):
        run_to_end([start, never], [tmp_path / "log"] * 2)


def test_a_second_interrupt_does_not_stop_the_ending(tmp_path):
    """A command that ignores SIGTERM gets its three seconds and is then killed."""
    code = (
        "import os, signal, sys, time\n"
        "paceline = int(sys.argv[1])\n"
        "signal.signal(signal.SIGTERM, lambda *_: os.kill(paceline, signal.SIGINT))\n"
        "os.kill(paceline, signal.SIGINT)\n"
        "while True: time.sleep(1)\n"
    )
    processes = []

    def start():
        command = [sys.executable, "-c", code, str(os.getpid())]
        processes.append(start_process(command, {}, subprocess.DEVNULL))
        return processes[0]

    with pytest.raises(KeyboardInterrupt):
        run_to_end([start], [tmp_path / "log"])
    assert processes[0].returncode == -signal.SIGKILL


def test_an_interrupt_after_the_last_check_is_not_lost():
    with pytest.raises(KeyboardInterrupt), held_interrupts():
        os.kill(os.getpid(), signal.SIGINT)


def test_a_signal_that_is_ignored_stays_ignored(monkeypatch):
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with held_interrupts():
            os.kill(os.getpid(), signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_paceline_run_takes_its_command_with_it(tmp_path, number):
    pid_file = tmp_path / "pid"
    code = f"import os, time; open({str(pid_file)!r}, 'w').write(str(os.getpid())); time.sleep(60)"
    command = [sys.executable, "-m", "paceline", "run", "--", sys.executable, "-c", code]
    paceline = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while not (pid_file.exists() and pid_file.read_text()) and time.monotonic() < deadline:
        time.sleep(0.05)
    paceline.send_signal(number)
    _, stderr = paceline.communicate(timeout=60)
    assert paceline.returncode == 128 + number
    assert "Traceback" not in stderr
    assert not psutil.pid_exists(int(pid_file.read_text()))
