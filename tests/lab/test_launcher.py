"""The lab launcher keeps the contract of launchers, in a lab that is up and in one of its own."""

import os
import signal
import subprocess
import sys

import pytest

from lab.conftest import needs_lab
from lab.test_lab import wait_until_gone
from paceline.errors import InputError, UnknownNameError
from paceline.lab import LabSettings, lab_down, lab_up
from paceline.lab.lab_cluster import NAMESPACES
from paceline.launch import LaunchRequest, LaunchSettings, launcher
from paceline.testing.launcher_suite import CHECKS, LauncherBench, run_check

WHERE = "import subprocess; print(subprocess.check_output(['ip', '-4', '-o', 'addr']).decode())"


def lab_launcher(**options):
    return launcher("lab", LaunchSettings(options=options))


@needs_lab
@pytest.mark.parametrize("check", CHECKS)
def test_the_lab_launcher_keeps_the_contract(check, tmp_path, lab_name):
    lab_up(LabSettings(2), lab_name)
    result = run_check(check, CHECKS[check], LauncherBench(lab_launcher(name=lab_name), tmp_path))
    assert result.passed, result.message


@needs_lab
@pytest.mark.usefixtures("lab_name")
def test_each_node_is_a_host_of_a_lab_made_for_the_launch(tmp_path):
    command = (sys.executable, "-c", WHERE)
    request = LaunchRequest(lambda rank: command, tmp_path, 60.0, nodes=2)
    ended = lab_launcher(link="1gbit", delay="1ms").launch(request)
    assert not ended.reason
    for rank, one in enumerate(ended.ranks):
        printed = one.log.read_text()
        assert f"198.18.0.{rank + 1}/24" in printed
    assert not list(NAMESPACES.glob(f"paceline-launch-{os.getpid()}-*"))


@needs_lab
def test_next_lab_removes_the_lab_of_a_killed_runner(tmp_path, lab_name):
    script = (
        "import sys\nfrom pathlib import Path\n"
        "from paceline.launch import LaunchRequest, LaunchSettings, launcher\n"
        "command = (sys.executable, '-c', 'import os,time; print(os.getpid()); time.sleep(600)')\n"
        f"request = LaunchRequest(lambda rank: command, Path({str(tmp_path)!r}), 600.0, nodes=2,\n"
        "    on_event=lambda event: print('started', flush=True))\n"
        "launcher('lab', LaunchSettings(options={'delay': '1ms'})).launch(request)\n"
    )
    runner = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert runner.stdout.readline() == "started\n"
    spaces = list(NAMESPACES.glob(f"paceline-launch-{runner.pid}-*"))
    inside = [
        int(line)
        for space in spaces
        for line in subprocess.check_output(["ip", "netns", "pids", space.name]).split()
    ]
    runner.send_signal(signal.SIGKILL)
    runner.wait()
    assert len(spaces) == 3 and inside
    lab_down(lab_name)
    assert not any(space.exists() for space in spaces)
    for process in inside:
        wait_until_gone(process)


@needs_lab
def test_invalid_options_fail_before_the_launch(lab_name):
    lab_up(LabSettings(1), lab_name)
    with pytest.raises(InputError, match="3 nodes exceed the 1 host of") as caught:
        lab_launcher(name=lab_name).validate(3, 1)
    assert f"paceline lab up --hosts 3 --name {lab_name}" in caught.value.hint
    with pytest.raises(InputError, match="no lab named 'other'"):
        lab_launcher(name="other").validate(1, 1)
    with pytest.raises(InputError, match="400 Gbit/s"):
        lab_launcher(link="400gbit").validate(2, 1)
    with pytest.raises(InputError, match="excludes link, delay and speed"):
        lab_launcher(link="1gbit", name=lab_name).validate(1, 1)
    with pytest.raises(UnknownNameError, match="delya"):
        lab_launcher(delya="1ms")
