"""A plan as the flags or settings of the programs that people train with."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from paceline.naming import look_up
from paceline.plan.choices import OptimiserState, PipelineSchedule, Recompute
from paceline.plan.plan import Plan
from paceline.plan.program_choices import (
    TORCH_SCHEDULES,
    told_deepspeed,
    told_fsdp,
    told_megatron,
    told_torchtitan,
)
from paceline.workload.blocks import blocks
from paceline.workload.workload import Workload

_HALVES = {"bf16", "fp16"}


@dataclass(frozen=True)
class ProgramFlags:
    """What a program is told, and what of the plan it cannot be told."""

    program: str
    text: str
    missing: tuple[str, ...] = ()


def program_flags(program: str, plan: Plan, workload: Workload) -> ProgramFlags:
    """The plan for ``workload`` (of one replica) in the words of a program of `PROGRAMS`."""
    return look_up("program", program, PROGRAMS, f"one of {', '.join(PROGRAMS)}")(plan, workload)


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
    if plan.ep > 1:
        flags.append(f"--expert-model-parallel-size {plan.ep}")
    if plan.sequence_parallel:
        flags.append("--sequence-parallel")
    if plan.interleave > 1:
        flags.append(f"--num-virtual-stages-per-pipeline-rank {plan.interleave}")
    flags += [*_megatron_sharding(plan), *_megatron_state(plan)]
    if plan.recompute is Recompute.SELECTIVE:
        flags.append("--recompute-granularity selective")
    flags += _megatron_full_recomputation(plan, workload)
    if workload.precision in _HALVES:
        flags.append(f"--{workload.precision}")
    told = told_megatron(plan, workload)
    flags += told.flags
    missing = told.missing
    if plan.zero == 0 and plan.optimiser_state is not OptimiserState.FP32:
        missing.append("short momenta need --use-distributed-optimizer (zero 1)")
    if plan.pp > 1 and plan.pipeline is PipelineSchedule.GPIPE:
        missing.append("Megatron-LM has no GPipe schedule")
    if plan.recompute_every > 1:
        missing.append("Megatron-LM computes the first blocks of each stage again, as many")
    uneven = len(blocks(workload.graph)) % plan.chunks
    if uneven and plan.pp > 1:
        missing.append("stages are uneven: give --pipeline-model-parallel-layout")
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
    if plan.optimiser_state is OptimiserState.FP32:
        return []
    width = "bf16" if plan.optimiser_state is OptimiserState.BF16 else "fp8"
    return [
        "--use-precision-aware-optimizer",
        f"--exp-avg-dtype {width}",
        f"--exp-avg-sq-dtype {width}",
    ]


def _short_state_in_program(plan: Plan) -> list[str]:
    """What programs without a setting for it must be changed to."""
    if plan.optimiser_state is OptimiserState.FP32:
        return []
    if plan.optimiser_state is OptimiserState.BF16:
        return ["in the program: an optimiser that keeps its momenta in bf16"]
    return ["in the program: AdamW8bit of torchao or bitsandbytes"]


def _torchtitan(plan: Plan, workload: Workload) -> ProgramFlags:
    micro_batch, count = plan.batches(workload.batch)
    replicated, some = plan.zero == 0, plan.recompute_every > 1
    settings = {
        "training.local_batch_size": micro_batch * (count if plan.pp > 1 else 1),
        "training.global_batch_size": workload.global_batch(plan.dp),
        "training.seq_len": workload.sequence,
        "parallelism.data_parallel_replicate_degree": plan.dp if replicated else plan.shard_copies,
        "parallelism.data_parallel_shard_degree": 1 if replicated else plan.dp // plan.shard_copies,
        "parallelism.tensor_parallel_degree": plan.tp,
        "parallelism.pipeline_parallel_degree": plan.pp,
        "parallelism.context_parallel_degree": plan.cp,
        "parallelism.expert_parallel_degree": plan.ep if plan.ep > 1 else None,
        "activation_checkpoint.mode": "selective" if some else str(plan.recompute),
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
    told = told_torchtitan(plan, workload)
    settings |= told.settings
    missing = ["torchtitan shards weights too where it shards"] if plan.zero in (1, 2) else []
    missing += [*_short_state_in_program(plan), *told.missing]
    flags = [f"--{name} {value}" for name, value in settings.items() if value is not None]
    flags += told.flags
    return ProgramFlags("torchtitan", _wrapped(flags), tuple(missing))


def _deepspeed(plan: Plan, workload: Workload) -> ProgramFlags:
    micro_batch, count = plan.batches(workload.batch)
    sharding: dict[str, object] = {"stage": plan.zero, "overlap_comm": True}
    if plan.shard_copies > 1:
        sharding["mics_shard_size"] = plan.shard_degree
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
    told = told_deepspeed(plan, workload)
    sharding |= told.settings.pop("zero_optimization", {})
    settings |= told.settings
    missing = [*_short_state_in_program(plan), *told.missing]
    if plan.shard_copies > 1:
        missing.append("in the program: the model is made under deepspeed.zero.MiCS_Init")
        if plan.zero < 3:
            missing.append("DeepSpeed's groups of shards (MiCS) are of zero 3")
    if plan.pp > 1:
        missing.append(f"in the program: PipelineModule(..., num_stages={plan.pp})")
        if plan.interleave > 1:
            missing.append("DeepSpeed has no interleaved schedule")
        if plan.zero >= 2:
            missing.append("DeepSpeed pipelines take zero 0 or 1")
    if plan.recompute is not Recompute.NONE:
        around = _checkpointed(plan)
        missing.append(f"in the program: deepspeed.checkpointing.checkpoint around {around}")
    if plan.cp > 1:
        missing.append(f"in the program: DistributedAttention over {plan.cp} devices (Ulysses)")
    if plan.ep > 1:
        missing.append(f"in the program: MoE(..., ep_size={plan.ep})")
    return ProgramFlags("deepspeed", json.dumps(settings, indent=2), tuple(missing))


def _fsdp(plan: Plan, workload: Workload) -> ProgramFlags:
    micro_batch, count = plan.batches(workload.batch)
    copies = {"copies": plan.shard_copies} if plan.shard_copies > 1 else {}
    sizes = {**copies, "dp": plan.dp // plan.shard_copies, "cp": plan.cp, "tp": plan.tp}
    mesh = {name: size for name, size in sizes.items() if size > 1 or name == "dp"}
    sharded = 'mesh["copies", "dp"]' if copies else 'mesh["dp"]'
    shape, names = tuple(mesh.values()), tuple(mesh)
    lines = [f'mesh = init_device_mesh("cuda", {shape}, mesh_dim_names={names})']
    if plan.tp > 1:
        lines.append('parallelize_module(block, mesh["tp"], tensor_parallel_plan)  # each block')
    if plan.recompute not in (Recompute.NONE, Recompute.OPERATION):
        lines.append(f"block = checkpoint_wrapper(block)  # {_checkpointed(plan)}")
    if plan.zero == 0:
        lines.append('replicate(model, device_mesh=mesh["dp"])')
    else:
        again = plan.zero == 3
        lines.append(
            f"fully_shard(block, mesh={sharded}, reshard_after_forward={again})  # each block"
        )
        lines.append(f"fully_shard(model, mesh={sharded}, reshard_after_forward={again})")
    told = told_fsdp(plan, workload)
    lines += told.flags
    lines.append(f"# {micro_batch} samples at a time, {count} times per optimiser step")
    missing = [*_short_state_in_program(plan), *told.missing]
    if plan.zero in (1, 2):
        missing.append("FSDP shards weights too; kept after forward they are gathered once a step")
    if plan.pp > 1:
        missing.append(f"pipelines of {plan.pp} stages: {_torch_schedule(plan)}")
    if plan.cp > 1:
        missing.append('in the program: context_parallel(mesh["cp"], ...)')
    if plan.ep > 1:
        missing.append(f"FSDP has no expert parallelism (ep {plan.ep})")
    return ProgramFlags("fsdp", "\n".join(lines), tuple(missing))


def _torch_schedule(plan: Plan) -> str:
    name = TORCH_SCHEDULES.get(plan.pipeline)
    return "torch.distributed.pipelining" + (f".Schedule{name}" if name else "")


def _wrapped(flags: list[str]) -> str:
    return " \\\n".join(flags)


PROGRAMS: Mapping[str, Callable[[Plan, Workload], ProgramFlags]] = {
    "torchtitan": _torchtitan,
    "megatron": _megatron,
    "deepspeed": _deepspeed,
    "fsdp": _fsdp,
}
"""Programs that a plan can be written for."""
