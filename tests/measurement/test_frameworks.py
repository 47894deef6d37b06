import sys
from pathlib import Path

import pytest

from paceline.errors import EnvironmentUnusableError, InputError
from paceline.measurement.environments import Choice, choose, forget
from paceline.measurement.frameworks import (
    FRAMEWORKS,
    check_runnable,
    framework,
    interpreter,
    worker_command,
)
from paceline.measurement.job import Job
from paceline.measurement.run import run_job
from paceline.store import Status, Store
from paceline.workload import zoo


@pytest.fixture(autouse=True)
def _no_environments(tmp_path, monkeypatch):
    monkeypatch.setenv("PACELINE_ENVIRONMENTS", str(tmp_path / "environments"))
    for one in FRAMEWORKS.values():
        monkeypatch.delenv(one.interpreter_variable, raising=False)


def test_every_framework_has_its_worker_and_its_line_to_install():
    for one in FRAMEWORKS.values():
        assert one.worker.exists()
        if one.environment:
            assert one.install == f"paceline frameworks install {one.name}"


def test_a_choice_of_the_user_comes_before_our_own():
    choose("torch", Choice(interpreter=sys.executable))
    assert interpreter(framework("torch-ddp")) == sys.executable
    choose("torch", Choice(interpreter="/nowhere/python"))
    with pytest.raises(EnvironmentUnusableError, match="chosen for torch-ddp is '/nowhere"):
        interpreter(framework("torch-ddp"))
    assert forget("torch")
    with pytest.raises(InputError, match="an interpreter or an image"):
        Choice()


def test_what_is_not_installed_says_how_to_install_it():
    with pytest.raises(EnvironmentUnusableError) as caught:
        check_runnable(framework("chainer"))
    assert "paceline frameworks install chainer" in caught.value.hint


def test_a_container_needs_an_engine(monkeypatch):
    monkeypatch.setenv("PACELINE_JAX_IMAGE", "example/jax:1")
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(EnvironmentUnusableError, match="neither docker nor podman"):
        check_runnable(framework("jax"))


@pytest.mark.slow
def test_a_job_runs_in_a_container(tmp_path, monkeypatch):
    """A stand-in for docker drops its own arguments and runs what comes after the image."""
    engine = tmp_path / "docker"
    engine.write_text(
        '#!/bin/sh\nwhile [ "$1" != example/torch:1 ]; do shift; done\nshift 2\n'
        f'exec {sys.executable} "$@"\n'
    )
    engine.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("PACELINE_TORCH_IMAGE", "example/torch:1")
    command = worker_command(framework("torch-ddp"), 1, tmp_path)
    assert f"{tmp_path}:{tmp_path}" in command.arguments
    job = Job(model="fcn5", graph=zoo.build("fcn5").to_json(), batch_per_rank=2, steps=1)
    with Store(tmp_path / "store.db") as store:
        assert run_job(job, store, "s").status is Status.FINISHED


def test_mpi_starts_all_ranks_with_one_process(tmp_path, monkeypatch):
    (tmp_path / "mpiexec").touch()
    monkeypatch.setattr(
        "paceline.measurement.frameworks.interpreter", lambda _: str(tmp_path / "py")
    )
    command = worker_command(framework("chainer"), 2, tmp_path)
    assert command.processes == 1
    assert command.arguments[:3] == (str(tmp_path / "mpiexec"), "-n", "2")
    assert worker_command(framework("chainer"), 1, tmp_path).arguments[0].endswith("py")


@pytest.mark.parametrize(
    ("model", "claimed"),
    [("resnet44", True), ("vgg16", True), ("fcn5", True), ("gpt2", True), ("unet", False)],
)
def test_workers_claim_what_they_can_build(model, claimed):
    graph = zoo.build(model).to_json()
    assert framework("jax").claims(graph) is claimed
    assert framework("torch-ddp").claims(graph)


def test_an_instrument_that_a_worker_lacks_is_refused(tmp_path):
    job = Job(model="x", graph={}, batch_per_rank=1, framework="jax", instrument="layers")
    with Store(tmp_path / "s.db") as store, pytest.raises(InputError, match="no instrument 'lay"):
        run_job(job, store, "s")


def test_workers_are_named_unlike_the_modules_they_import():
    names = {path.stem for path in Path(framework("jax").worker).parent.glob("*.py")}
    assert not names & {one.module.split(".")[0] for one in FRAMEWORKS.values()}
