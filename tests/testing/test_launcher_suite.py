"""Built-in launchers keep the contract of launchers, and one that does not is told so."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from paceline.launch import Detection, Launcher, LaunchExit, LaunchRequest, LocalLauncher, RankExit
from paceline.launch.mpiexec import MpiexecLauncher
from paceline.testing.launcher_suite import CHECKS, LauncherBench, run_check

MPIEXEC = """#!{python}
import os, subprocess, sys
command, count = sys.argv[3:], int(sys.argv[2])
ranks = [
    subprocess.Popen(command, env={{**os.environ, "PMI_RANK": str(rank)}}) for rank in range(count)
]
sys.exit(max(rank.wait() for rank in ranks))
"""
"""As little of an engine as MPI can be: it starts ranks and waits; a signal to it ends it alone."""


@pytest.mark.parametrize("check", CHECKS)
def test_the_local_launcher_keeps_the_contract(check, tmp_path):
    result = run_check(check, CHECKS[check], LauncherBench(LocalLauncher(), tmp_path))
    assert result.passed, result.message


@pytest.fixture
def _mpiexec(tmp_path, monkeypatch):
    """The real mpiexec where there is one, else a stand-in."""
    if shutil.which("mpiexec") is None:
        program = tmp_path / "bin" / "mpiexec"
        program.parent.mkdir()
        program.write_text(MPIEXEC.format(python=sys.executable))
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")


@pytest.mark.usefixtures("_mpiexec")
def test_a_command_that_mpi_cannot_run_is_reported_with_its_rank(tmp_path):
    request = LaunchRequest(lambda rank: ["no-such-program"], tmp_path, 20.0, processes=2)
    ended = MpiexecLauncher().launch(request)
    assert [rank.code for rank in ended.ranks] == [127, 127]
    assert "cannot run 'no-such-program'" in ended.ranks[1].log.read_text()


@pytest.mark.usefixtures("_mpiexec")
@pytest.mark.parametrize("check", CHECKS)
def test_the_mpi_launcher_keeps_the_contract(check, tmp_path):
    result = run_check(check, CHECKS[check], LauncherBench(MpiexecLauncher(), tmp_path))
    assert result.passed, result.message


class Careless(Launcher):
    """Starts every rank alike, waits for none, and says that all went well."""

    name = "careless"

    def detect(self):
        return Detection(False, "")

    def validate(self, nodes, processes):
        pass

    def launch(self, request):
        exits = []
        for rank, log in enumerate(request.logs):
            with log.open("wb") as output:
                subprocess.Popen(request.command(0), stdout=output, stderr=output)
            exits.append(RankExit(rank, 0, log))
        return LaunchExit(tuple(exits), "", 0.0)


@pytest.mark.parametrize(
    ("check", "message"),
    [
        ("detection", "neither success nor a remedy"),
        ("validation", "more nodes than hosts"),
        ("commands", "printed"),
        ("exit codes", "come back as"),
        ("events", "started"),
    ],
)
def test_violations_of_a_launcher_are_reported(check, message, tmp_path):
    result = run_check(check, CHECKS[check], LauncherBench(Careless(), tmp_path))
    assert result.passed is False
    assert message in result.message


def test_leftover_processes_of_a_launcher_are_reported(tmp_path, monkeypatch):
    monkeypatch.setattr("paceline.testing.leftovers.SETTLING_SECONDS", 0.5)
    monkeypatch.setattr("paceline.testing.launcher_suite.HANGS", "import time; time.sleep(8)")
    result = run_check("timeout", CHECKS["timeout"], LauncherBench(Careless(), tmp_path))
    assert result.passed is False
    assert "leftover process" in result.message


def test_a_missing_mpiexec_is_reported_with_a_remedy(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert MpiexecLauncher().detect() == Detection(False, "", MpiexecLauncher().detect().remedy)
    result = run_check("events", CHECKS["events"], LauncherBench(MpiexecLauncher(), tmp_path))
    assert "did not find the program mpiexec" in result.message


def test_mpiexec_next_to_the_interpreter_has_precedence(tmp_path):
    (tmp_path / "mpiexec").touch(mode=0o755)
    command = (str(tmp_path / "python"), "worker.py")
    request = LaunchRequest(lambda rank: command, Path(), 1.0, processes=2)
    assert MpiexecLauncher().engine(request) == [str(tmp_path / "mpiexec"), "-n", "2"]
