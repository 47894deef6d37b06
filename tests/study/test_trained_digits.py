"""Digits trained by epochs: the same accuracy on one process and on two, from the command line."""

import json

import pytest
from installation import builds

from commandline import run

pytestmark = [pytest.mark.torch, pytest.mark.slow]


@pytest.mark.parametrize("framework", ["torch-ddp", "torch-fsdp"])
def test_two_processes_come_to_the_accuracy_of_one(tmp_path, framework):
    check_accuracy(framework, tmp_path)


@pytest.mark.parametrize(
    "framework",
    [
        pytest.param(name, marks=pytest.mark.framework(name, builds=builds()))
        for name in ("horovod-torch", "horovod-tensorflow")
    ],
)
@pytest.mark.usefixtures("installed")
def test_two_processes_of_horovod_come_to_the_accuracy_of_one(tmp_path, framework):
    check_accuracy(framework, tmp_path)


def check_accuracy(framework, tmp_path):
    """One process and two train alike, and learn the digits."""
    store = f"--store {tmp_path / 's.db'}"
    measured = run(
        "paceline measure --model digits_cnn --data digits --epochs 2 --batch 32 --scaling strong "
        f"-j 1x1,1x2 --launches 2 --learning-rate 0.05 --framework {framework} --study d {store}"
    )
    assert "Equivalence of accuracy" in measured
    told = run(f"paceline report d --out {tmp_path / 'page.html'} --json {store}")
    found = json.loads(told)["accuracy"]
    assert [loss["verdict"] for loss in found["losses"]] == ["the same"]
    alone, both = (one["epochs"] for one in found["configurations"])
    for first, second in zip(alone, both, strict=True):
        assert second["train_loss"] == pytest.approx(first["train_loss"], rel=1e-3)
        assert second["test_accuracy"] == pytest.approx(first["test_accuracy"], abs=0.01)
    assert alone[-1]["test_accuracy"] > 0.9
