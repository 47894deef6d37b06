import sys

import pytest

from paceline.errors import EnvironmentUnusableError, InputError
from paceline.frameworks.command import check_runnable, interpreter, search_path, worker_command
from paceline.frameworks.environments.choice import EnvironmentChoice, choose, forget
from paceline.frameworks.framework_registry import framework, frameworks
from paceline.measurement.job import Job
from paceline.measurement.run_job import run_job
from paceline.store import Status, Store
from paceline.workload import zoo


@pytest.fixture(autouse=True)
def _no_environments(tmp_path, monkeypatch):
    monkeypatch.setenv("PACELINE_ENVIRONMENTS", str(tmp_path / "environments"))
    for one in frameworks().values():
        monkeypatch.delenv(one.interpreter_variable, raising=False)


def test_every_framework_has_its_worker_and_its_line_to_install():
    for one in frameworks().values():
        assert one.worker.exists()
        if one.environment:
            assert one.install == f"paceline frameworks install {one.name}"


def test_user_choice_overrides_the_installed_environment():
    choose("torch", EnvironmentChoice(interpreter=sys.executable))
    assert interpreter(framework("torch-ddp")) == sys.executable
    choose("torch", EnvironmentChoice(interpreter="/nowhere/python"))
    with pytest.raises(EnvironmentUnusableError, match="chosen for torch-ddp \\('/nowhere"):
        interpreter(framework("torch-ddp"))
    assert forget("torch")
    with pytest.raises(InputError, match="exactly one of interpreter and image"):
        EnvironmentChoice()


def test_missing_framework_error_shows_the_install_command():
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
    """A replacement of docker drops its own arguments and runs the command after the image."""
    engine = tmp_path / "docker"
    engine.write_text(
        '#!/bin/sh\nwhile [ "$1" != example/torch:1 ]; do shift; done\nshift 2\n'
        f'exec {sys.executable} "$@"\n'
    )
    engine.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("PACELINE_TORCH_IMAGE", "example/torch:1")
    command = worker_command(framework("torch-ddp"), tmp_path)
    assert f"{tmp_path}:{tmp_path}" in command.arguments
    for folder in search_path(framework("torch-ddp")):
        assert f"{folder}:{folder}:ro" in command.arguments
    job = Job(model="fcn5", graph=zoo.build("fcn5").to_json(), batch_per_rank=2, steps=1)
    with Store(tmp_path / "store.db") as store:
        assert run_job(job, store, "s").status is Status.FINISHED


@pytest.mark.parametrize(
    ("model", "claimed"),
    [("resnet44", True), ("vgg16", True), ("fcn5", True), ("gpt2", True), ("unet", False)],
)
def test_workers_claim_supported_operations(model, claimed):
    graph = zoo.build(model).to_json()
    assert framework("jax").claims(graph) is claimed
    assert framework("torch-ddp").claims(graph)


def test_an_instrument_that_a_worker_lacks_is_refused(tmp_path):
    job = Job(model="x", graph={}, batch_per_rank=1, framework="jax", instrument="layers")
    with (
        Store(tmp_path / "s.db") as store,
        pytest.raises(InputError, match="support the instrument 'lay"),
    ):
        run_job(job, store, "s")


def test_most_of_the_zoo_is_claimed_by_every_framework():
    claimed = [name for name in zoo.names() if framework("jax").claims(zoo.build(name).to_json())]
    assert len(claimed) == 107
    assert {"googlenet", "mobilenet_v2", "vit_b_16", "bert_base", "gpt2"} <= set(claimed)
