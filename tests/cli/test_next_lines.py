"""Suggested next commands run as printed and describe the same job."""

import json
from pathlib import Path

import pytest
from builders import comparison_launches, keep, keep_profile, study_launches
from click.testing import CliRunner

from commandline import next_commands, run, try_out
from paceline.cli.main import cli
from paceline.store import Store

LOGS = Path(__file__).parents[1] / "fixtures" / "logs"
NET = """
from torch import nn


def make_model():
    pool = nn.AdaptiveAvgPool2d(1)
    return nn.Sequential(nn.Conv2d(3, 4, 3), pool, nn.Flatten(), nn.Linear(4, 2))
"""
LAB = """
[cluster.lab]
device = "v100"
devices_per_node = 4
nodes = 8
intra = "pcie3_x16"
inter = "eth_10g"
"""


@pytest.fixture(autouse=True)
def _world(tmp_path):
    (tmp_path / "net.py").write_text(NET)
    (tmp_path / "lab.toml").write_text(LAB)
    (tmp_path / "study.toml").write_text('model = "resnet20"\n[factors]\nbatch = [8, 16]\n')
    with Store(tmp_path / "own.db") as store:
        keep(store, study_launches("mine"))
        keep(store, study_launches("again", prefix="a"))
        keep(store, comparison_launches("theirs"))
        keep_profile(store)


@pytest.mark.parametrize(
    "line",
    [
        "predict --model resnet50 --batch 64 --cluster hkbu-v100-pcie -j 1x4,2x4",
        "predict --model llama3_8b --seq 4096 --batch 1 --precision bf16 --cluster dgx-a100 -j 2x8 "
        "--zero 3 --framework torch-fsdp --link eth_100g --no-fused-attention",
        "predict --model net.py:make_model --input 4x3x8x8 --device v100",
        "predict --trace googlenet_k80 --nodes 2,8 --link eth_10g",
        "predict --model resnet44 -j 1x2 --store own.db",
        "whatif --model resnet50 --cluster lab.toml --nodes 2 --compression top_k:0.01",
        "sweep --model alexnet --batch 26 --cluster hkbu-v100-pcie -j 8x1 --axis link=1gbit..9gbit",
        "advise --model gpt2 --cluster lab.toml --nodes 2 --global-batch 64 --link eth_100g",
        "advise --per-layer --model alexnet --cluster lab.toml -j 8x1 --global-batch 256",
        "inspect net.py:make_model --input 4x3x8x8",
        "inspect gpt2 --seq 512 --precision bf16",
        "inspect gpt2 --seq 512 --all-layers",
        "catalog models resnet1",
        "catalog clusters --file lab.toml",
        "catalog clusters dgx-a100",
        "catalog recipes",
        "catalog recipes caffe",
        "doctor",
        pytest.param(
            "catalog publications --family hkbu --limit 2", marks=pytest.mark.slow
        ),  # validates
        "catalog publications --sources",
        "study list --launches --store own.db",
        "study show mine --store own.db",
        "study show l6 --store own.db",
        "explain mine --store own.db",
        "explain theirs --store own.db --framework jax",
        "report mine --store own.db --out 'my page.html'",
        "report theirs --store own.db",
        "study export launches.csv --store own.db --study mine",
        "calibrate --store own.db --no-probe",
        f"import {LOGS / 'caffe_train_recorded.log'} --dry-run --study it --store own.db",
        f"import {LOGS / 'caffe_time_recorded.log'} --dry-run",
        f"import {LOGS / 'caffe_train_recorded.log'} --study it --store own.db",
        f"import {LOGS / 'nccl_all_reduce.log'}",
        "study list --store own.db",
        "study rename mine ours --store own.db",
        "study annotate mine 'new kernel' --store own.db",
        "study delete theirs --store own.db --yes",
        "study merge own.db --store other.db",
        "compare mine theirs --store own.db",
        "compare mine again --store own.db",
        "study check study.toml --store own.db",
    ],
)
def test_the_next_line_runs_as_printed(line):
    commands = next_commands(run(f"paceline {line}"))
    assert commands
    for command in commands:
        try_out(command)


def test_the_next_line_of_predict_is_whatif_of_the_same_step():
    job = (
        "--model llama3_8b --seq 4096 --batch 1 --precision bf16 --cluster dgx-a100 -j 2x8 "
        "--zero 3 --framework torch-fsdp --link eth_100g"
    )
    (then,) = next_commands(run(f"paceline predict {job}"))
    predicted = json.loads(run(f"paceline predict {job} --json"))["predictions"][0]
    base = json.loads(run(f"{then} --json"))["base"]
    assert base == predicted


def test_the_next_line_of_advise_predicts_the_best_plan():
    job = "--model gpt2 --cluster lab.toml --nodes 2 --global-batch 64 --link eth_100g"
    (then,) = next_commands(run(f"paceline advise {job}"))
    best = json.loads(run(f"paceline advise {job} --json"))["best"][0]
    predicted = json.loads(run(f"{then} --json"))["predictions"][0]
    assert predicted["step_seconds"] == pytest.approx(best["step_seconds"])
    assert predicted["plan"] == best["plan"]


def test_values_are_quoted_for_a_shell():
    output = run(["study", "show", "mine", "--store", "own.db"])
    assert all("--store own.db" in command for command in next_commands(output))
    Path("own.db").rename("our launches.db")
    output = run(["study", "list", "--store", "our launches.db"])
    assert "--store 'our launches.db'" in output


def test_standard_output_of_latex_contains_tables_only():
    line = "--tables latex predict --model resnet50 --cluster dgx-a100 --nodes 1,2"
    found = CliRunner().invoke(cli, line.split())
    assert found.stdout.startswith(r"\begin{table}")
    assert found.stdout.rstrip().endswith(r"\end{table}")
    assert "Next: paceline" in found.stderr and "note: " in found.stderr
