"""Forms, schedules, offload and adapters of a plan in the words of training programs."""

from dataclasses import dataclass, field
from typing import Any

from paceline.plan.choices import ContextForm, Offload, PipelineSchedule, Recompute
from paceline.plan.plan import Plan
from paceline.workload.adapters import adapter_rank
from paceline.workload.blocks import blocks
from paceline.workload.workload import Workload

TORCH_SCHEDULES = {
    PipelineSchedule.ZB_V: "ZBVZeroBubble",
    PipelineSchedule.DUALPIPE: "DualPipeV",
}
"""Names of PyTorch's schedules, ``Schedule`` before them as classes."""
_ROTATION = {ContextForm.RING: "alltoall", ContextForm.GATHER: "allgather"}
"""How PyTorch calls the exchange of keys and values."""


@dataclass
class Told:
    """What a program is told of a plan's choices, and what it cannot be told.

    ``flags`` are words of a command line or lines of a program, ``settings`` keys of a file.
    """

    flags: list[str] = field(default_factory=list)
    settings: dict[str, Any] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)


def told_megatron(plan: Plan, workload: Workload) -> Told:
    """Flags of Megatron-LM."""
    told = Told()
    forms = {
        ContextForm.RING: "p2p",
        ContextForm.GATHER: "allgather",
        ContextForm.ULYSSES: "a2a",
    }
    if plan.context_form in forms:
        told.flags.append(f"--cp-comm-type {forms[plan.context_form]}")
    elif plan.context_form is not None:
        told.missing.append("Megatron-LM balances causal masks in its ring")
    if plan.tp_overlap:
        told.flags.append("--tp-comm-overlap")
    if Offload.OPTIMISER in plan.offload:
        told.flags += ["--optimizer-cpu-offload", "--use-precision-aware-optimizer"]
    if Offload.ACTIVATIONS in plan.offload:
        # Megatron-LM wants fewer layers than there are.
        count = len(blocks(workload.graph)) - 1
        told.flags.append(f"--cpu-offloading-num-layers {count}")
        if plan.pp > 1 or plan.recompute is not Recompute.NONE:
            told.missing.append("Megatron-LM offloads activations without pipeline or recompute")
    if plan.recompute is Recompute.OPERATION:
        told.missing.append("Megatron-LM chooses by modules (--recompute-modules), not operations")
    if plan.pipeline.splits_backward:
        told.missing.append(f"Megatron-LM has no schedule {plan.pipeline}")
    return _without_adapters(told, workload, "Megatron-LM: adapters are those of Megatron Bridge")


def told_torchtitan(plan: Plan, workload: Workload) -> Told:
    """Settings of torchtitan."""
    told = Told()
    if plan.context_form in _ROTATION:
        told.settings["parallelism.context_parallel_rotate_method"] = _ROTATION[plan.context_form]
    elif plan.context_form is not None:
        told.missing.append(f"torchtitan shares out no tokens of the form {plan.context_form}")
    if plan.tp_overlap:
        told.flags += ["--parallelism.enable_async_tensor_parallel", "--compile.enable"]
    if Offload.OPTIMISER in plan.offload:
        told.flags.append("--training.enable_cpu_offload")
        told.missing.append("torchtitan offloads weights and gradients with optimiser state")
    if Offload.ACTIVATIONS in plan.offload:
        told.missing.append("in the program: torch.autograd.graph.save_on_cpu around forward")
    if plan.recompute is Recompute.OPERATION:
        told.settings["activation_checkpoint.mode"] = "selective"
        told.settings["activation_checkpoint.selective_ac_option"] = "op"
    if plan.pipeline in TORCH_SCHEDULES:
        told.settings["parallelism.pipeline_parallel_schedule"] = TORCH_SCHEDULES[plan.pipeline]
    elif plan.pipeline is PipelineSchedule.ZERO_BUBBLE:
        told.missing.append("torchtitan's zero-bubble schedules have two or more chunks per stage")
    return _without_adapters(told, workload, "torchtitan trains no adapters")


def told_deepspeed(plan: Plan, workload: Workload) -> Told:
    """Settings of DeepSpeed; those of ``zero_optimization`` under that key."""
    told = Told()
    if plan.cp > 1 and plan.context_form not in (None, ContextForm.ULYSSES):
        told.missing.append(f"DeepSpeed's context parallelism is Ulysses, not {plan.context_form}")
    if plan.tp_overlap:
        told.missing.append("DeepSpeed has no setting for messages under products")
    if Offload.OPTIMISER in plan.offload:
        told.settings["zero_optimization"] = {
            "offload_optimizer": {"device": "cpu", "pin_memory": True}
        }
        if plan.zero == 0:
            told.missing.append("DeepSpeed offloads sharded state: zero 1 or more")
    if Offload.ACTIVATIONS in plan.offload:
        told.settings["activation_checkpointing"] = {"cpu_checkpointing": True}
        told.missing.append("DeepSpeed moves the inputs of checkpointed blocks, nothing else")
    if plan.recompute is Recompute.OPERATION:
        told.missing.append("DeepSpeed checkpoints whole calls, not chosen operations")
    if plan.pipeline.splits_backward:
        told.missing.append(f"DeepSpeed has no schedule {plan.pipeline}")
    return _with_peft(told, workload)


def told_fsdp(plan: Plan, workload: Workload) -> Told:
    """Lines of a program with PyTorch's own parts."""
    told = Told()
    if plan.context_form in _ROTATION:
        told.flags.append(f'set_rotate_method("{_ROTATION[plan.context_form]}")')
    elif plan.context_form is not None:
        told.missing.append(f"PyTorch has no context parallelism of the form {plan.context_form}")
    if plan.tp_overlap:
        told.flags.append("torch._inductor.config._micro_pipeline_tp = True  # needs torch.compile")
    if Offload.OPTIMISER in plan.offload:
        told.missing.append(
            "fully_shard(..., offload_policy=CPUOffloadPolicy()) moves weights and gradients too"
        )
    if Offload.ACTIVATIONS in plan.offload:
        told.flags.append("with torch.autograd.graph.save_on_cpu(pin_memory=True): ...  # forward")
    if plan.recompute is Recompute.OPERATION:
        told.missing.append(
            "in the program: checkpoint with create_selective_checkpoint_contexts around each block"
        )
    return _with_peft(told, workload)


def _with_peft(told: Told, workload: Workload) -> Told:
    rank = adapter_rank(workload.graph)
    if rank is not None:
        told.missing.append(
            f'in the program: LoraConfig(r={rank}, target_modules="all-linear") of peft'
        )
    if workload.frozen_bytes is not None:
        told.missing.append("in the program: BitsAndBytesConfig(load_in_4bit=True, ...)")
    return told


def _without_adapters(told: Told, workload: Workload, why: str) -> Told:
    if adapter_rank(workload.graph) is not None:
        told.missing.append(why)
    return told
