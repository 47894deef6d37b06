"""Emitted settings are accepted by the parsers of torchtitan, DeepSpeed and Accelerate."""

import json
import os
import subprocess
import sys
import sysconfig
from dataclasses import replace

import pytest

from paceline.predictor.emit.program_choices import _FLAVORS
from paceline.predictor.emit.program_flags import program_flags
from paceline.predictor.plan.plan import Plan
from paceline.predictor.plan.plan_choices import (
    ContextForm,
    Offload,
    PipelineSchedule,
    Recompute,
)
from paceline.workload.workload import Workload

PROGRAMS = ("torchtitan==0.2.2", "torchdata", "deepspeed==0.19.8", "accelerate")
NEEDED = (
    "tyro",
    "huggingface-hub",
    "safetensors",
    "tokenizers",
    "tqdm",
    "hjson",
    "msgpack",
    "einops",
    "py-cpuinfo",
    "pydantic",
)
WORKLOAD = Workload.of("llama3_8b", 8, 2048, "bf16", "adam")
SHARDED = Plan(dp=8, zero=3)
PLANS = {
    "replicas": Plan(dp=8),
    "zero 1": Plan(dp=8, zero=1),
    "zero 3": SHARDED,
    "accumulation": Plan(dp=4, zero=2, micro_batch=2),
    "shard groups": replace(SHARDED, shard_group=4),
    "tensor": Plan(dp=2, tp=4, zero=1, sequence_parallel=True, tp_overlap=True),
    "pipeline": Plan(dp=2, pp=4, micro_batch=1, interleave=2),
    "zero bubble": Plan(dp=2, pp=4, micro_batch=1, interleave=2, pipeline=PipelineSchedule.ZB_V),
    "context": Plan(dp=2, cp=4, zero=3, cp_impl=ContextForm.RING),
    "optimizer in host memory": replace(SHARDED, offload=(Offload.OPTIMIZER,)),
    "activations in host memory": replace(SHARDED, offload=(Offload.ACTIVATIONS,)),
    "full recomputation": replace(SHARDED, recompute=Recompute.FULL),
    "every second block": replace(SHARDED, recompute=Recompute.FULL, recompute_every=2),
    "operations": replace(SHARDED, recompute=Recompute.OPERATION),
    "selective": replace(SHARDED, recompute=Recompute.SELECTIVE),
}
DRIVER = """
import json, shlex, sys
from unittest.mock import MagicMock

# Kernels for GPUs, data sets and images, which parsing does not use.
for name in ("torchtitan.models.moe.kernels", "datasets", "datasets.distributed", "torchvision",
             "PIL", "torch.utils.tensorboard"):
    sys.modules[name] = MagicMock()

def torchtitan(text, dp):
    from torchtitan.config import ConfigManager
    if text.startswith("["):
        file = open("plan.toml", "w")
        print(text, file=file, flush=True)
        text = "--job.config_file plan.toml"
    words = shlex.split(text.replace(chr(92) + chr(10), " "))
    config = ConfigManager().parse_args(words)
    ours = dict(zip(words[::2], words[1::2])) if len(words) % 2 == 0 else {}
    size = ours.get("--training.local_batch_size")
    assert size is None or config.training.local_batch_size == int(size)
    if config.model.flavor != "debugmodel":
        module = __import__(f"torchtitan.models.{config.model.name}", fromlist=["x"])
        names = {key for own in vars(module).values() if isinstance(own, dict) for key in own}
        assert config.model.flavor in names, config.model.flavor

def deepspeed(text, dp):
    from deepspeed.runtime import config
    config.dist = MagicMock(get_rank=lambda: 0)
    parsed = config.DeepSpeedConfig(
        json.loads(text), mpu=MagicMock(get_data_parallel_world_size=lambda: dp)
    )
    assert parsed.zero_optimization_stage == json.loads(text)["zero_optimization"]["stage"]

def accelerate(text, dp):
    from accelerate.commands.config.config_args import load_config_from_file
    file = open("plan.yaml", "w")
    print(text, file=file, flush=True)
    found = load_config_from_file("plan.yaml")
    assert found.num_processes % dp == 0
    known = vars(accelerate_arguments)
    for table in ("fsdp_config", "deepspeed_config", "parallelism_config"):
        assert not {*(getattr(found, table, None) or {})} - {*known}

from accelerate.commands.launch import launch_command_parser
accelerate_arguments = launch_command_parser().parse_args(["script.py"])

failed = {}
for program, name, text, dp in json.load(open(sys.argv[1])):
    try:
        globals()[program.removesuffix("-toml")](text, dp)
    except (Exception, SystemExit) as error:
        failed[f"{program}: {name}"] = repr(error)[:500]
json.dump(failed, open(sys.argv[2], "w"))
"""


@pytest.mark.slow
@pytest.mark.torch
def test_the_programs_parse_what_is_emitted(tmp_path):
    interpreter = _environment(tmp_path / "environment")
    cases = [
        (program, f"{name}, {precision}", _text(program, plan, precision), plan.dp)
        for program in ("torchtitan", "torchtitan-toml", "deepspeed", "accelerate")
        for name, plan in PLANS.items()
        for precision in ("bf16", "fp32", "fp16")
    ]
    flavors = [Workload.of(name, 8, 2048, "bf16", "adam") for name in _FLAVORS]
    cases += [
        ("torchtitan", own.graph.name, program_flags("torchtitan", SHARDED, own).text, 8)
        for own in flavors
    ]
    (tmp_path / "cases.json").write_text(json.dumps(cases))
    (tmp_path / "driver.py").write_text(DRIVER)
    words = [interpreter, tmp_path / "driver.py", tmp_path / "cases.json", tmp_path / "failed.json"]
    _run([*map(str, words)])
    assert json.loads((tmp_path / "failed.json").read_text()) == {}


def _environment(folder):
    """An environment with the programs, without their dependencies, and this one's PyTorch."""
    _run([sys.executable, "-m", "venv", str(folder)])
    own = folder / "lib" / f"python{sysconfig.get_python_version()}" / "site-packages"
    (own / "ours.pth").write_text(sysconfig.get_paths()["purelib"])
    python = str(folder / "bin" / "python")
    _run([python, "-m", "pip", "install", "--quiet", "--no-deps", *PROGRAMS])
    _run([python, "-m", "pip", "install", "--quiet", *NEEDED])
    return python


def _run(words):
    environment = {**os.environ, "DS_ACCELERATOR": "cpu"}
    ran = subprocess.run(
        words, capture_output=True, text=True, timeout=600, check=False, env=environment
    )
    assert ran.returncode == 0, ran.stderr[-2000:]


def _text(program, plan, precision):
    return program_flags(program, plan, replace(WORKLOAD, precision=precision)).text
