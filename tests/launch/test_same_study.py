"""One study file through every launcher: rows that differ in nothing but launcher and time."""

import os

import pytest

from launch.slurm_box import running_box
from launch.ssh_daemon import HOSTS, PROGRAM, running_daemon
from paceline.store import Status
from paceline.study import Study

HERE = "localhost,localhost"
FILE = """
model = "resnet20"
batch = 4
processes = ["2x1"]
launches = 1
steps = 3
warmup_steps = 1
"""
OWN = ("launcher", "hosts", "launcher_options")
"""What of a job says how it was launched."""


@pytest.fixture
def measured(tmp_path):
    """Runs the study with a launcher, and gives its row."""
    (tmp_path / "study.toml").write_text(FILE)

    def run(launcher, **settings):
        study = Study.read(tmp_path / "study.toml", name=launcher, launcher=launcher, **settings)
        (launch,) = study.run(timeout_seconds=120.0).launches
        assert launch.status is Status.FINISHED, launch.outcome.reason
        assert launch.environment["launcher"] == launcher
        job = {name: value for name, value in launch.job.items() if name not in OWN}
        return job, launch.nodes, [rank.losses for rank in launch.outcome.ranks]

    return run


@pytest.mark.slow
def test_rows_of_local_and_torchrun_are_the_same(measured):
    assert measured("local", hosts=HERE) == measured("torchrun", hosts=HERE)


@pytest.mark.slow
@pytest.mark.skipif(PROGRAM is None, reason="no sshd: script/slurm-up install")
def test_rows_of_local_and_ssh_are_the_same(measured, tmp_path_factory):
    with running_daemon(tmp_path_factory.mktemp("sshd")) as daemon:
        options = [f"{name}={value}" for name, value in daemon.options.items()]
        over_ssh = measured("ssh", hosts=list(HOSTS), launcher_options=options)
    assert measured("local", hosts=HERE) == over_ssh


@pytest.mark.slow
def test_rows_of_local_and_slurm_are_the_same(measured, tmp_path_factory):
    with running_box(tmp_path_factory.mktemp("slurm"), os.environ):
        submitted = measured("slurm")
    assert measured("local", hosts=HERE) == submitted


@pytest.mark.slow
def test_rows_of_local_and_mpi_are_the_same(measured, request):
    from launch.test_mpi import installed_mpi

    options = [f"mpiexec={installed_mpi(request.config, 'openmpi')}"]
    assert measured("local", hosts=HERE) == measured(
        "mpiexec", hosts=HERE, launcher_options=options
    )
