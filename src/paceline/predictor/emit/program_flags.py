"""A plan as flags or settings of training programs."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from paceline.errors import InputError
from paceline.naming import look_up
from paceline.predictor.emit.launch_settings import accelerate, slurm, toml_text, trl
from paceline.predictor.emit.megatron_network import network_flags
from paceline.predictor.emit.program_choices import (
    TORCH_SCHEDULES,
    deepspeed_flags,
    fsdp_flags,
    megatron_flags,
    model_flavor,
    torchtitan_flags,
)
from paceline.predictor.plan.plan import Plan
from paceline.predictor.plan.plan_choices import OptimizerState, PipelineSchedule, Recompute
from paceline.workload.blocks import blocks
from paceline.workload.precision import precision
from paceline.workload.workload import Workload

_HALVES = {"bf16", "fp16"}


@dataclass(frozen=True)
class ProgramFlags:
    """Flags of a program, and the parts of the plan that it does not support."""

    program: str
    text: str
    missing: tuple[str, ...] = ()


def program_flags(
    program: str, plan: Plan, workload: Workload, devices_per_node: int = 8
) -> ProgramFlags:
    """The plan for ``workload`` (of one replica) as flags of a program of `EMITTED`.

    Files that start a training (`LAUNCHES`) also state the nodes.
    """
    known = {**PROGRAMS, **dict.fromkeys(LAUNCHES)}
    write = look_up("program", program, known, f"one of {', '.join(known)}")
    if write is not None:
        return write(plan, workload)
    text, missing = LAUNCHES[program](plan, workload, devices_per_node)
    return ProgramFlags(program, text, tuple(missing))


def _megatron(plan: Plan, workload: Workload) -> ProgramFlags:
    micro_batch, _ = plan.batches(workload.batch)
    flags = [
        f"--tensor-model-parallel-size {plan.tp}",
        f"--pipeline-model-parallel-size {plan.pp}",
        f"--context-parallel-size {plan.cp}",
        f"--micro-batch-size {micro_batch}",
        f"--global-batch-size {workload.global_batch(plan.dp)}",
    ]
    if workload.sequence is not None:
        flags.append(f"--seq-length {workload.sequence}")
    network = network_flags(workload.graph, workload.sequence)
    flags += network
    if plan.sequence_parallel:
        flags.append("--sequence-parallel")
    if plan.interleave > 1:
        flags.append(f"--num-virtual-stages-per-pipeline-rank {plan.interleave}")
    flags += [*_megatron_sharding(plan), *_megatron_state(plan)]
    if plan.recompute is Recompute.SELECTIVE:
        flags.append("--recompute-granularity selective")
        if plan.recompute_modules:
            flags.append(f"--recompute-modules {' '.join(plan.recompute_modules)}")
    flags += _megatron_full_recomputation(plan, workload)
    if workload.precision in _HALVES:
        flags.append(f"--{workload.precision}")
    chosen = megatron_flags(plan, workload)
    flags += chosen.flags
    missing = chosen.missing
    if not network:
        missing.append("flags of the network: only decoders with equal blocks have them")
    if "--position-embedding-type rope" in network:
        missing.append("--rotary-base: rope_theta of config.json")
    if plan.zero == 0 and plan.optimizer_state is not OptimizerState.FP32:
        missing.append("low-precision optimizer state needs --use-distributed-optimizer (zero 1)")
    if plan.pp > 1 and plan.pipeline is PipelineSchedule.GPIPE:
        missing.append("Megatron-LM has no GPipe schedule")
    if plan.recompute_every > 1:
        missing.append(
            "Megatron-LM recomputes the same number of blocks, but the first ones of each stage"
        )
    uneven = len(blocks(workload.graph)) % plan.chunks
    if uneven and plan.pp > 1:
        missing.append("stages are uneven: add --pipeline-model-parallel-layout")
    return ProgramFlags("megatron", _wrapped(flags), tuple(missing))


def _megatron_full_recomputation(plan: Plan, workload: Workload) -> list[str]:
    if plan.recompute is not Recompute.FULL:
        return []
    method, count = "uniform", 1
    if plan.recompute_every > 1:
        method = "block"
        count = max(1, len(blocks(workload.graph)) // (plan.chunks * plan.recompute_every))
    return [
        f"--recompute-granularity full --recompute-method {method}",
        f"--recompute-num-layers {count}",
    ]


def _checkpointed(plan: Plan) -> str:
    """Which blocks a program checkpoints."""
    return "each block" if plan.recompute_every == 1 else f"one block in {plan.recompute_every}"


def _megatron_sharding(plan: Plan) -> list[str]:
    if plan.zero == 0:
        return ["--overlap-grad-reduce"] if plan.holders > 1 else []
    overlapped = ["--use-distributed-optimizer", "--overlap-grad-reduce", "--overlap-param-gather"]
    if plan.shard_copies > 1:
        overlapped.append(f"--num-distributed-optimizer-instances {plan.shard_copies}")
    if plan.zero == 1:
        return overlapped
    kind = "optim_grads" if plan.zero == 2 else "optim_grads_params"
    sharded = f"--use-megatron-fsdp --data-parallel-sharding-strategy {kind}"
    copies = ["--outer-dp-sharding-strategy no_shard"] if plan.shard_copies > 1 else []
    return [*overlapped, sharded, *copies]


def _megatron_state(plan: Plan) -> list[str]:
    if plan.optimizer_state is OptimizerState.FP32:
        return []
    width = "bf16" if plan.optimizer_state is OptimizerState.BF16 else "fp8"
    return [
        "--use-precision-aware-optimizer",
        f"--exp-avg-dtype {width}",
        f"--exp-avg-sq-dtype {width}",
    ]


def _short_state_in_program(plan: Plan) -> list[str]:
    """Code changes for programs without a setting."""
    if plan.optimizer_state is OptimizerState.FP32:
        return []
    if plan.optimizer_state is OptimizerState.BF16:
        return ["in the program: use an optimizer with bf16 state"]
    return ["in the program: use AdamW8bit of torchao or bitsandbytes"]


def _torchtitan(plan: Plan, workload: Workload) -> ProgramFlags:
    settings, missing = _torchtitan_settings(plan, workload)
    flags = [f"--{name}" if value is True else f"--{name} {value}" for name, value in settings]
    return ProgramFlags("torchtitan", _wrapped(flags), missing)


def _torchtitan_file(plan: Plan, workload: Workload) -> ProgramFlags:
    settings, missing = _torchtitan_settings(plan, workload)
    return ProgramFlags("torchtitan-toml", toml_text(dict(settings)), missing)


def _torchtitan_settings(
    plan: Plan, workload: Workload
) -> tuple[list[tuple[str, Any]], tuple[str, ...]]:
    """Settings of torchtitan by ``table.key``, and the parts of the plan that it lacks."""
    micro_batch, count = plan.batches(workload.batch)
    replicated, some = plan.zero == 0, plan.recompute_every > 1
    width = precision(workload.precision)
    computes = width.other_compute or width.compute
    settings = {
        **model_flavor(workload),
        "training.local_batch_size": micro_batch * (count if plan.pp > 1 else 1),
        "training.global_batch_size": workload.global_batch(plan.dp),
        "training.seq_len": workload.sequence,
        "training.mixed_precision_param": "float32" if computes == "fp32" else "bfloat16",
        "parallelism.data_parallel_replicate_degree": plan.dp if replicated else plan.shard_copies,
        "parallelism.data_parallel_shard_degree": 1 if replicated else plan.dp // plan.shard_copies,
        "parallelism.tensor_parallel_degree": plan.tp,
        "parallelism.pipeline_parallel_degree": plan.pp,
        "parallelism.context_parallel_degree": plan.cp,
        "parallelism.expert_parallel_degree": plan.ep if plan.ep > 1 else None,
        "activation_checkpoint.mode": _torchtitan_mode(plan),
        "activation_checkpoint.selective_ac_option": plan.recompute_every if some else None,
    }
    if plan.pp > 1:
        schedule = "GPipe" if plan.pipeline is PipelineSchedule.GPIPE else "1F1B"
        settings |= {
            "parallelism.pipeline_parallel_schedule": (
                "Interleaved1F1B" if plan.interleave > 1 else schedule
            ),
            "parallelism.pipeline_parallel_microbatch_size": micro_batch,
            "parallelism.pipeline_parallel_layers_per_stage": len(blocks(workload.graph))
            // plan.chunks
            if plan.interleave > 1
            else None,
        }
    if plan.zero in (1, 2):
        settings["parallelism.fsdp_reshard_after_forward"] = "never"
    chosen = torchtitan_flags(plan, workload)
    settings |= chosen.settings
    missing = ["torchtitan always shards weights too"] if plan.zero in (1, 2) else []
    if computes == "fp16":
        missing.append("torchtitan computes in bf16 or fp32, not fp16")
    missing += [*_short_state_in_program(plan), *chosen.missing]
    return [item for item in settings.items() if item[1] is not None], tuple(missing)


def _torchtitan_mode(plan: Plan) -> str:
    if plan.recompute_modules:
        return "none"
    return "selective" if plan.recompute_every > 1 else str(plan.recompute)


def _deepspeed(plan: Plan, workload: Workload) -> ProgramFlags:
    micro_batch, count = plan.batches(workload.batch)
    sharding: dict[str, object] = {"stage": plan.zero, "overlap_comm": True}
    settings: dict[str, object] = {
        "train_batch_size": workload.global_batch(plan.dp),
        "train_micro_batch_size_per_gpu": micro_batch,
        "gradient_accumulation_steps": count,
        "zero_optimization": sharding,
    }
    if workload.precision in _HALVES:
        settings[workload.precision] = {"enabled": True}
    if plan.tp > 1:
        settings["tensor_parallel"] = {"autotp_size": plan.tp}
    chosen = deepspeed_flags(plan, workload)
    sharding |= chosen.settings.pop("zero_optimization", {})
    settings |= chosen.settings
    missing = [*_short_state_in_program(plan), *chosen.missing]
    if plan.shard_copies > 1:
        missing.append("DeepSpeed has no shard groups (MiCS was removed): states are fully sharded")
    if plan.pp > 1:
        missing.append(f"in the program: PipelineModule(..., num_stages={plan.pp})")
        if plan.interleave > 1:
            missing.append("DeepSpeed has no interleaved schedule")
        if plan.zero >= 2:
            missing.append("DeepSpeed pipelines support only zero 0 and 1")
    if plan.recompute is not Recompute.NONE and not plan.recompute_modules:
        around = _checkpointed(plan)
        missing.append(f"in the program: deepspeed.checkpointing.checkpoint around {around}")
    if plan.cp > 1:
        missing.append(f"in the program: DistributedAttention over {plan.cp} devices (Ulysses)")
    if plan.ep > 1:
        missing.append(f"in the program: MoE(..., ep_size={plan.ep})")
    return ProgramFlags("deepspeed", json.dumps(settings, indent=2), tuple(missing))


def _fsdp(plan: Plan, workload: Workload) -> ProgramFlags:
    if plan.zero == 1:
        raise InputError(
            "FSDP2 cannot shard optimizer state alone (ZeRO-1)",
            "use --zero 2 (reshard_after_forward=False) or --zero 3",
        )
    micro_batch, count = plan.batches(workload.batch)
    policy = _mixed_precision(workload.precision)
    lines = [*_fsdp_imports(plan, policy), *_fsdp_mesh(plan), *policy, *_fsdp_blocks(plan)]
    further = ", mp_policy=policy" if policy else ""
    if plan.zero == 0:
        wrap = f"replicate({{}}, mesh=shards{further})"
    else:
        wrap = f"fully_shard({{}}, mesh=shards{further}, reshard_after_forward={plan.zero == 3})"
    lines += [
        "for block in model.layers.children():  # the repeated blocks of the model",
        f"    {wrap.format('block')}",
        wrap.format("model"),
    ]
    chosen = fsdp_flags(plan, workload)
    lines += chosen.flags
    lines.append(f"# micro-batch {micro_batch}, gradient accumulation steps {count}")
    missing = [*_short_state_in_program(plan), *chosen.missing]
    if plan.zero == 2:
        missing.append(
            "FSDP shards weights too; kept after forward, they are gathered once per step"
        )
    if plan.pp > 1:
        missing.append(f"pipelines of {plan.pp} stages: {_torch_schedule(plan)}")
    if plan.cp > 1:
        missing.append('in the program: context_parallel(mesh["cp"], ...)')
    if plan.ep > 1:
        missing.append(f"FSDP has no expert parallelism (ep {plan.ep})")
    return ProgramFlags("fsdp", "\n".join(lines), tuple(missing))


def _mixed_precision(name: str) -> list[str]:
    """The mixed-precision policy of FSDP2; empty for fp32."""
    width = precision(name)
    compute = {"bf16": "bfloat16", "fp16": "float16"}.get(width.other_compute or width.compute)
    if compute is None:
        return []
    return [
        f"policy = MixedPrecisionPolicy(param_dtype=torch.{compute}, reduce_dtype=torch.float32)"
    ]


def _fsdp_imports(plan: Plan, policy: list[str]) -> list[str]:
    names = [*(["MixedPrecisionPolicy"] if policy else [])]
    names += ["fully_shard"] if plan.zero else []
    lines = ["import torch", "from torch.distributed.device_mesh import init_device_mesh"]
    if names:
        lines.append(f"from torch.distributed.fsdp import {', '.join(names)}")
    if plan.zero == 0:
        lines.append("from torch.distributed._composable.replicate_with_fsdp import replicate")
    if plan.tp > 1:
        lines.append("from torch.distributed.tensor.parallel import parallelize_module")
    if _wraps_blocks(plan):
        module = "torch.distributed.algorithms._checkpoint.checkpoint_wrapper"
        lines.append(f"from {module} import checkpoint_wrapper")
    return lines


def _wraps_blocks(plan: Plan) -> bool:
    chosen = plan.recompute is Recompute.OPERATION or bool(plan.recompute_modules)
    return plan.recompute is not Recompute.NONE and not chosen


def _fsdp_mesh(plan: Plan) -> list[str]:
    """The device mesh, and its sub-mesh of data- and context-parallel ranks for gradients."""
    copies = {"copies": plan.shard_copies} if plan.shard_copies > 1 and plan.zero else {}
    dp = plan.dp // (plan.shard_copies if copies else 1)
    sizes = {**copies, "dp": dp, "cp": plan.cp, "tp": plan.tp}
    mesh = {name: size for name, size in sizes.items() if size > 1 or name == "dp"}
    names = json.dumps(list(mesh))
    lines = [f'mesh = init_device_mesh("cuda", {[*mesh.values()]}, mesh_dim_names={names})']
    shards = 'mesh["dp"]'
    if plan.cp > 1:  # every rank of dp and of cp has gradients of its own tokens
        lines.append('mesh["dp", "cp"]._flatten("dp_cp")')
        shards = 'mesh["dp_cp"]'
    if copies:
        shards = shards.replace("[", '["copies", ')
    return [*lines, f"shards = {shards}"]


def _fsdp_blocks(plan: Plan) -> list[str]:
    """Code applied to each block before sharding."""
    if plan.tp == 1 and not _wraps_blocks(plan):
        return []
    lines = ["for number, (name, block) in enumerate(list(model.layers.named_children())):"]
    if plan.tp > 1:
        lines.append('    parallelize_module(block, mesh["tp"], tensor_parallel_plan)')
    if _wraps_blocks(plan):
        every = plan.recompute_every
        lines += [f"    if number % {every} == 0:  # {_checkpointed(plan)}"] if every > 1 else []
        indent = "        " if every > 1 else "    "
        lines.append(f"{indent}model.layers.register_module(name, checkpoint_wrapper(block))")
    return lines


def _torch_schedule(plan: Plan) -> str:
    name = TORCH_SCHEDULES.get(plan.pipeline)
    return "torch.distributed.pipelining" + (f".Schedule{name}" if name else "")


def _wrapped(flags: list[str]) -> str:
    return " \\\n".join(flags)


LAUNCHES = {"accelerate": accelerate, "trl": trl, "slurm": slurm}
PROGRAMS: Mapping[str, Callable[[Plan, Workload], ProgramFlags]] = {
    "torchtitan": _torchtitan,
    "torchtitan-toml": _torchtitan_file,
    "megatron": _megatron,
    "deepspeed": _deepspeed,
    "fsdp": _fsdp,
}
"""Supported programs."""
