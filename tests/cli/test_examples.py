"""Every example in a command's help and in docs/start/commands.md runs."""

import re
import shutil
from pathlib import Path

import click
import pytest
from builders import keep, keep_profile, study_launches

from cli.test_next_lines import LAB, NET
from commandline import run, try_out
from paceline.cli.main import COMMANDS
from paceline.cli.next_steps import command_named
from paceline.store import Store, default_store_path

ROOT = Path(__file__).parents[2]
FIXTURES = ROOT / "tests" / "fixtures"
FILES = {
    "caffe.log": "logs/caffe_train_recorded.log",
    "train.log": "logs/caffe_train_recorded.log",
    "job-1.out": "logs/keras3_fit.log",
    "job-2.out": "logs/keras3_fit.log",
    "trace-rank0.json": "traces/kineto_gloo_rank0.json",
    "trace-rank1.json": "traces/kineto_gloo_rank1.json",
    "operations.csv": "traces/operations.csv",
}
GPT2 = '{"model_type": "gpt2", "n_embd": 64, "n_layer": 2, "n_head": 4, "vocab_size": 99}'
UNET = """
from torch import nn


class UNet(nn.Sequential):
    def __init__(self, channels, classes):
        super().__init__(nn.Conv2d(channels, 4, 3, padding=1), nn.Conv2d(4, classes, 1))
"""
SLOW = ("validate",)


def help_examples():
    for name in sorted(COMMANDS):
        command = command_named(name)
        inner = list(command.commands.values()) if isinstance(command, click.Group) else []
        for one in (command, *inner):
            yield from examples_in(f"{one.help}\n{one.epilog}")


def examples_in(text):
    """Lines that begin with ``paceline``, continued lines joined, remarks in brackets left out."""
    joined = re.sub(r" \\\n\s*", " ", text)
    for line in joined.splitlines():
        if line.strip().startswith("paceline "):
            yield re.sub(r"\s{2,}\(.*\)$", "", line.strip())


def page_examples():
    text = (ROOT / "docs" / "start" / "commands.md").read_text(encoding="utf-8")
    found = re.findall(r"`(paceline [^`]+)`", text)
    return [code.replace("FILE", "study.toml") for code in found if "--help" not in code]


def marked(lines):
    for line in dict.fromkeys(lines):
        slow = line.split()[1] in SLOW
        yield pytest.param(line, marks=pytest.mark.slow if slow else ())


@pytest.fixture(autouse=True)
def _world(tmp_path):
    """Every file, study and launch that examples name."""
    for name, source in FILES.items():
        shutil.copy(FIXTURES / source, tmp_path / name)
    for name in ("net.py", "model.py"):
        (tmp_path / name).write_text(NET)
    (tmp_path / "unet.py").write_text(UNET)
    (tmp_path / "lab.toml").write_text(LAB)
    (tmp_path / "config.json").write_text(GPT2)
    (tmp_path / "study.toml").write_text('model = "resnet20"\nprocesses = [1, 2]\n')
    with Store(default_store_path()) as store:
        for number, study in enumerate(
            ("resnet44-1115-214119", "resnet44-1115-2140", "resnet44-0147", "STUDY")
        ):
            keep(store, study_launches(study, prefix=f"19a3{'bcde'[number]}0"))
        keep_profile(store)


@pytest.mark.parametrize("line", list(marked([*help_examples(), *page_examples()])))
def test_an_example_works(line, tmp_path):
    if "model.onnx" in line:
        make_onnx(tmp_path / "model.onnx")
    if "mine.csv" in line:
        run("paceline catalog publications --family hkbu --limit 3 --export mine.csv")
    for name in {"before.json", "after.json"} & set(line.split()):
        prediction = run("paceline predict --model resnet50 --cluster dgx-1 --json")
        (tmp_path / name).write_text(prediction)
    if "other.db" in line:
        Store(tmp_path / "other.db").close()
    if line.startswith("paceline study verify "):
        run(f"paceline study package STUDY --out {line.split()[-1]}")
    if line.startswith("paceline study show 19a3b"):
        line = line.replace("19a3b", "19a3b06")
    try_out(line.removesuffix(" ...").partition(" > ")[0])


def make_onnx(path):
    onnx = pytest.importorskip("onnx")
    helper, kind = onnx.helper, onnx.TensorProto.FLOAT
    graph = helper.make_graph(
        [helper.make_node("Relu", ["x"], ["y"])],
        "tiny",
        [helper.make_tensor_value_info("x", kind, [1, 4])],
        [helper.make_tensor_value_info("y", kind, [1, 4])],
    )
    onnx.save(helper.make_model(graph), path)


def test_the_page_of_commands_has_examples():
    assert len(page_examples()) > 12
