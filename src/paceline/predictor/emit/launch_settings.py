"""A plan as files that start a training: Accelerate and TRL (YAML), and a Slurm script."""

import json
from collections.abc import Mapping
from typing import Any

from paceline.predictor.plan.plan import Plan
from paceline.predictor.plan.plan_choices import Offload, OptimizerState, Recompute
from paceline.workload.adapters import adapter_rank
from paceline.workload.precision import precision
from paceline.workload.workload import Workload

Emitted = tuple[str, list[str]]
"""Text, and the parts of the plan that the program does not support."""


def accelerate(plan: Plan, workload: Workload, devices_per_node: int) -> Emitted:
    """The file of ``accelerate launch --config_file``."""
    micro_batch, count = plan.batches(workload.batch)
    settings: dict[str, Any] = {
        "compute_environment": "LOCAL_MACHINE",
        "distributed_type": _distributed_type(plan),
        "mixed_precision": _mixed_precision(workload),
        "num_machines": -(-plan.devices // devices_per_node),
        "num_processes": plan.devices,
        "machine_rank": 0,
        "main_training_function": "main",
        "use_cpu": False,
    }
    if settings["distributed_type"] == "DEEPSPEED":
        settings["deepspeed_config"] = {
            "zero_stage": plan.zero,
            "gradient_accumulation_steps": count,
            "offload_optimizer_device": "cpu" if Offload.OPTIMIZER in plan.offload else "none",
            "zero3_init_flag": False,
        }
    elif settings["distributed_type"] == "FSDP":
        settings["fsdp_config"] = {
            "fsdp_version": 2,
            "fsdp_auto_wrap_policy": "TRANSFORMER_BASED_WRAP",
            "fsdp_reshard_after_forward": plan.zero == 3,
            "fsdp_offload_params": Offload.OPTIMIZER in plan.offload,
            "fsdp_activation_checkpointing": plan.recompute is Recompute.FULL,
            "fsdp_cpu_ram_efficient_loading": True,
            "fsdp_state_dict_type": "SHARDED_STATE_DICT",
        }
    copies = plan.shard_copies if plan.zero else plan.dp
    degrees = {"dp_replicate": copies, "dp_shard": plan.dp // copies, "cp": plan.cp, "tp": plan.tp}
    if plan.dp != plan.devices or plan.shard_copies > 1 < plan.zero:
        settings["parallelism_config"] = {
            f"parallelism_config_{name}_size": degree for name, degree in degrees.items()
        }
    comment = (
        f"# In the program: batches of {micro_batch}, Accelerator(gradient_accumulation_steps="
        f"{count})."
    )
    return f"{comment}\n{_yaml(settings)}", _unsupported(plan, "Accelerate")


def trl(plan: Plan, workload: Workload, devices_per_node: int) -> Emitted:
    """The file of ``trl sft --config``; the user adds the network and the data set."""
    micro_batch, count = plan.batches(workload.batch)
    rank = adapter_rank(workload.graph)
    settings: dict[str, Any] = {
        "accelerate_config": _trl_profile(plan),
        "num_processes": plan.devices,
        "num_machines": -(-plan.devices // devices_per_node),
        "per_device_train_batch_size": micro_batch,
        "gradient_accumulation_steps": count,
        "max_length": workload.sequence,
        "bf16": _mixed_precision(workload) == "bf16",
        "fp16": _mixed_precision(workload) == "fp16",
        "gradient_checkpointing": plan.recompute is not Recompute.NONE,
    }
    if plan.optimizer_state is OptimizerState.EIGHT_BIT:
        settings["optim"] = "adamw_8bit"
    if rank is not None:
        settings |= {"use_peft": True, "lora_r": rank, "lora_target_modules": "all-linear"}
        settings["load_in_4bit"] = workload.frozen_bytes is not None
    missing = _unsupported(plan, "TRL")
    if plan.tp > 1 or plan.cp > 1 or plan.shard_copies > 1 < plan.zero:
        missing.append("degrees of the plan belong in a file of its own: --emit accelerate")
    comment = "# Add model_name_or_path and dataset_name."
    return f"{comment}\n{_yaml({k: v for k, v in settings.items() if v is not None})}", missing


def slurm(plan: Plan, workload: Workload, devices_per_node: int) -> Emitted:
    """A batch script that starts the user's command with torchrun on every node."""
    nodes = -(-plan.devices // devices_per_node)
    devices = plan.devices // nodes
    name = "".join(c if c.isalnum() or c in "._-" else "_" for c in workload.graph.name)
    lines = [
        "#!/bin/bash",
        f"#SBATCH --job-name={name}",
        f"#SBATCH --nodes={nodes}",
        "#SBATCH --ntasks-per-node=1",
        f"#SBATCH --gpus-per-node={devices}",
        "# Submit with the command of the training: sbatch FILE train.py ARGUMENTS",
        'head=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)',
        f'srun torchrun --nnodes={nodes} --nproc-per-node={devices} --rdzv-id="$SLURM_JOB_ID" \\',
        '    --rdzv-backend=c10d --rdzv-endpoint="$head:29500" "$@"',
    ]
    return "\n".join(lines), ["the plan itself is set in the training program"]


def toml_text(settings: Mapping[str, Any]) -> str:
    """Settings with the keys ``table.key`` as TOML."""
    tables: dict[str, list[str]] = {}
    for name, value in settings.items():
        table, _, key = name.rpartition(".")
        tables.setdefault(table, []).append(f"{key} = {json.dumps(value)}")
    return "\n\n".join("\n".join([f"[{name}]", *lines]) for name, lines in tables.items())


def _distributed_type(plan: Plan) -> str:
    if plan.devices == 1:
        return "NO"
    if plan.zero == 1:
        return "DEEPSPEED"  # FSDP2 cannot shard optimizer state alone
    return "FSDP" if plan.zero or plan.dp != plan.devices else "MULTI_GPU"


def _trl_profile(plan: Plan) -> str:
    """The configuration of Accelerate that TRL contains."""
    known = {"NO": "single_gpu", "MULTI_GPU": "multi_gpu", "DEEPSPEED": "zero1", "FSDP": "fsdp2"}
    return known[_distributed_type(plan)]


def _mixed_precision(workload: Workload) -> str:
    width = precision(workload.precision)
    compute = width.other_compute or width.compute
    return compute if compute in ("bf16", "fp16") else "no"


def _unsupported(plan: Plan, program: str) -> list[str]:
    missing = [
        f"{program} has no {noun}"
        for noun, used in (
            (f"pipelines ({plan.pp} stages)", plan.pp > 1),
            (f"expert parallelism (ep {plan.ep})", plan.ep > 1),
            ("offload of activations", Offload.ACTIVATIONS in plan.offload),
        )
        if used
    ]
    if plan.recompute is not Recompute.NONE and (
        plan.recompute is not Recompute.FULL or plan.recompute_every > 1
    ):
        missing.append(f"{program} recomputes whole blocks, and all of them")
    return missing


def _yaml(settings: Mapping[str, Any], indent: str = "") -> str:
    lines = []
    for name, value in settings.items():
        if isinstance(value, Mapping):
            lines += [f"{indent}{name}:", _yaml(value, indent + "  ")]
        else:
            text = value if isinstance(value, str) else json.dumps(value)
            # YAML reads NO as false.
            lines.append(f"{indent}{name}: {json.dumps(text) if text in ('NO', 'no') else text}")
    return "\n".join(lines)
