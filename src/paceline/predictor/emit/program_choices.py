"""Context parallelism, schedules, offload and adapters as settings of training programs."""

from dataclasses import dataclass, field
from typing import Any

from paceline.predictor.plan.plan import Plan
from paceline.predictor.plan.plan_choices import (
    ContextForm,
    ExpertDispatch,
    LossKernel,
    Offload,
    PipelineSchedule,
    Recompute,
)
from paceline.workload.adapters import adapter_rank
from paceline.workload.blocks import blocks
from paceline.workload.workload import Workload

TORCH_SCHEDULES = {
    PipelineSchedule.ZB_V: "ZBVZeroBubble",
    PipelineSchedule.DUALPIPE: "DualPipeV",
}
"""Names of PyTorch's schedules, ``Schedule`` before them as classes."""
_FLAVORS = {
    "llama3_8b": "llama3 8B",
    "llama3_70b": "llama3 70B",
    "llama3_405b": "llama3 405B",
    "llama4_scout": "llama4 17bx16e",
    "llama4_maverick": "llama4 17bx128e",
    "deepseek_v3": "deepseek_v3 671B",
    "qwen3_8b": "qwen3 8B",
    "qwen3_32b": "qwen3 32B",
    "qwen3_30b_a3b": "qwen3 30B-A3B",
    "qwen3_235b_a22b": "qwen3 235B-A22B",
    "gpt_oss_20b": "gpt_oss 20b",
    "gpt_oss_120b": "gpt_oss 120b",
}
"""Networks of the zoo as model and flavor of torchtitan."""
_ROTATION = {ContextForm.RING: "alltoall", ContextForm.GATHER: "allgather"}
"""PyTorch's names for the exchange of keys and values."""


@dataclass
class ProgramSettings:
    """Settings of a program for a plan, and the unsupported parts of the plan.

    ``flags`` are command-line options or lines of code, ``settings`` keys of a file.
    """

    flags: list[str] = field(default_factory=list)
    settings: dict[str, Any] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)


def megatron_flags(plan: Plan, workload: Workload) -> ProgramSettings:
    """Flags of Megatron-LM."""
    chosen = ProgramSettings()
    forms = {
        ContextForm.RING: "p2p",
        ContextForm.GATHER: "allgather",
        ContextForm.ULYSSES: "a2a",
    }
    if plan.cp_impl in forms:
        chosen.flags.append(f"--cp-comm-type {forms[plan.cp_impl]}")
    elif plan.cp_impl is not None:
        chosen.missing.append("Megatron-LM always balances causal masks in ring attention")
    if plan.tp_overlap:
        chosen.flags.append("--tp-comm-overlap")
    chosen.flags += _megatron_experts(plan)
    if Offload.OPTIMIZER in plan.offload:
        chosen.flags += ["--optimizer-cpu-offload", "--use-precision-aware-optimizer"]
    if Offload.WEIGHTS in plan.offload:
        chosen.missing.append("Megatron-LM cannot offload weights")
    if Offload.ACTIVATIONS in plan.offload:
        # Megatron-LM wants fewer layers than there are.
        count = len(blocks(workload.graph)) - 1
        chosen.flags.append(f"--cpu-offloading-num-layers {count}")
        if plan.pp > 1 or plan.recompute is not Recompute.NONE:
            chosen.missing.append(
                "Megatron-LM cannot offload activations with pipelines or recomputation"
            )
    if plan.recompute is Recompute.OPERATION:
        chosen.missing.append(
            "Megatron-LM recomputes modules (--recompute-modules), not operations"
        )
    if plan.loss_kernel is LossKernel.FUSED:
        chosen.flags += ["--cross-entropy-loss-fusion", "--cross-entropy-fusion-impl te"]
    elif plan.loss_kernel is LossKernel.CHUNKED:
        chosen.flags += ["--cross-entropy-loss-fusion", "--cross-entropy-fusion-impl linear"]
    if plan.pipeline.splits_backward:
        chosen.missing.append(f"Megatron-LM has no schedule {plan.pipeline}")
    return _without_adapters(chosen, workload, "Megatron-LM has no adapters; use Megatron Bridge")


def _megatron_experts(plan: Plan) -> list[str]:
    """Flags of expert parallelism; Megatron-LM divides experts as layers unless it is changed."""
    flags = [f"--expert-model-parallel-size {plan.ep}"] if plan.ep > 1 else []
    if plan.folds_experts:
        flags.append(f"--expert-tensor-parallel-size {plan.expert_tp}")
    if plan.ep_impl is ExpertDispatch.DEEPEP:
        flags.append("--moe-token-dispatcher-type flex --moe-flex-dispatcher-backend deepep")
    if plan.ep_overlap:
        flags.append("--overlap-moe-expert-parallel-comm --delay-wgrad-compute")
    return flags


def model_flavor(workload: Workload) -> dict[str, str]:
    """Model and flavor of torchtitan, for networks that it contains."""
    name, _, flavor = _FLAVORS.get(workload.graph.name, "").partition(" ")
    return {"model.name": name, "model.flavor": flavor} if name else {}


def torchtitan_flags(plan: Plan, workload: Workload) -> ProgramSettings:
    """Settings of torchtitan."""
    chosen = ProgramSettings()
    if plan.cp_impl in _ROTATION:
        chosen.settings["parallelism.context_parallel_rotate_method"] = _ROTATION[plan.cp_impl]
    elif plan.cp_impl is not None:
        chosen.missing.append(f"torchtitan does not support {plan.cp_impl} context parallelism")
    if plan.tp_overlap:
        chosen.settings["parallelism.enable_async_tensor_parallel"] = True
        chosen.settings["compile.enable"] = True
    if plan.folds_experts or (plan.ep > 1 and plan.tp > 1):
        chosen.settings["parallelism.expert_tensor_parallel_degree"] = plan.expert_tp
    if plan.ep_overlap:
        chosen.missing.append("torchtitan cannot overlap the all-to-all of experts")
    if plan.ep_impl is ExpertDispatch.DEEPEP:
        chosen.settings["parallelism.expert_parallel_comm_backend"] = "deepep"
    if {Offload.OPTIMIZER, Offload.WEIGHTS} & {*plan.offload}:
        chosen.settings["training.enable_cpu_offload"] = True
        chosen.missing.append(
            "torchtitan offloads weights and gradients together with optimizer state"
        )
    if Offload.ACTIVATIONS in plan.offload:
        chosen.missing.append("in the program: torch.autograd.graph.save_on_cpu around forward")
    if plan.recompute is Recompute.OPERATION:
        chosen.settings["activation_checkpoint.mode"] = "selective"
        chosen.settings["activation_checkpoint.selective_ac_option"] = "op"
    if plan.pipeline in TORCH_SCHEDULES:
        chosen.settings["parallelism.pipeline_parallel_schedule"] = TORCH_SCHEDULES[plan.pipeline]
    elif plan.pipeline is PipelineSchedule.ZERO_BUBBLE:
        chosen.missing.append(
            "torchtitan's zero-bubble schedules have two or more chunks per stage"
        )
    _kernels_in_program(chosen, plan)
    return _without_adapters(chosen, workload, "torchtitan does not support adapters")


def deepspeed_flags(plan: Plan, workload: Workload) -> ProgramSettings:
    """Settings of DeepSpeed; those of ``zero_optimization`` under that key."""
    chosen = ProgramSettings()
    if plan.cp > 1 and plan.cp_impl not in (None, ContextForm.ULYSSES):
        chosen.missing.append(f"DeepSpeed's context parallelism is Ulysses, not {plan.cp_impl}")
    if plan.tp_overlap:
        chosen.missing.append("DeepSpeed cannot overlap tensor-parallel communication with GEMMs")
    if plan.ep_overlap or plan.ep_impl is ExpertDispatch.DEEPEP:
        chosen.missing.append("DeepSpeed sends tokens to experts by a plain all-to-all")
    if plan.ep > 1 and plan.expert_tp > 1:
        chosen.missing.append("in the program: MoE(..., enable_expert_tensor_parallelism=True)")
    if Offload.OPTIMIZER in plan.offload:
        chosen.settings["zero_optimization"] = {
            "offload_optimizer": {"device": "cpu", "pin_memory": True}
        }
        if plan.zero == 0:
            chosen.missing.append("DeepSpeed offloads only sharded state (zero 1 or higher)")
    if Offload.WEIGHTS in plan.offload:
        chosen.settings.setdefault("zero_optimization", {})["offload_param"] = {
            "device": "cpu",
            "pin_memory": True,
        }
    if Offload.ACTIVATIONS in plan.offload:
        chosen.settings["activation_checkpointing"] = {"cpu_checkpointing": True}
        chosen.missing.append("DeepSpeed offloads only the inputs of checkpointed blocks")
    if plan.recompute is Recompute.OPERATION:
        chosen.missing.append("DeepSpeed checkpoints whole calls, not single operations")
    if plan.pipeline.splits_backward:
        chosen.missing.append(f"DeepSpeed has no schedule {plan.pipeline}")
    _kernels_in_program(chosen, plan)
    return _with_peft(chosen, workload)


def fsdp_flags(plan: Plan, workload: Workload) -> ProgramSettings:
    """Lines of code for PyTorch FSDP2."""
    chosen = ProgramSettings()
    if plan.cp_impl in _ROTATION:
        chosen.flags.append(f'set_rotate_method("{_ROTATION[plan.cp_impl]}")')
    elif plan.cp_impl is not None:
        chosen.missing.append(f"PyTorch does not support {plan.cp_impl} context parallelism")
    if plan.tp_overlap:
        chosen.flags.append(
            "torch._inductor.config._micro_pipeline_tp = True  # needs torch.compile"
        )
    if {Offload.OPTIMIZER, Offload.WEIGHTS} & {*plan.offload}:
        chosen.missing.append(
            "fully_shard(..., offload_policy=CPUOffloadPolicy()) moves weights and gradients too"
        )
    if Offload.ACTIVATIONS in plan.offload:
        chosen.flags.append(
            "with torch.autograd.graph.save_on_cpu(pin_memory=True): ...  # forward"
        )
    if plan.recompute is Recompute.OPERATION:
        chosen.missing.append(
            "in the program: checkpoint with create_selective_checkpoint_contexts around each block"
        )
    _kernels_in_program(chosen, plan)
    return _with_peft(chosen, workload)


def _kernels_in_program(chosen: ProgramSettings, plan: Plan) -> None:
    """Parts of a plan that a training script applies itself: modules recomputed, loss kernel."""
    if plan.recompute_modules:
        names = ", ".join(plan.recompute_modules)
        chosen.missing.append(f"in the program: torch.utils.checkpoint around {names}")
    if plan.loss_kernel is LossKernel.FUSED:
        chosen.missing.append("in the program: LigerCrossEntropyLoss")
    elif plan.loss_kernel is LossKernel.CHUNKED:
        chosen.missing.append("in the program: LigerFusedLinearCrossEntropyLoss")


def _with_peft(chosen: ProgramSettings, workload: Workload) -> ProgramSettings:
    rank = adapter_rank(workload.graph)
    if rank is not None:
        chosen.missing.append(
            f'in the program: LoraConfig(r={rank}, target_modules="all-linear") of peft'
        )
    if workload.frozen_bytes is not None:
        chosen.missing.append("in the program: BitsAndBytesConfig(load_in_4bit=True, ...)")
    return chosen


def _without_adapters(chosen: ProgramSettings, workload: Workload, why: str) -> ProgramSettings:
    if adapter_rank(workload.graph) is not None:
        chosen.missing.append(why)
    return chosen
