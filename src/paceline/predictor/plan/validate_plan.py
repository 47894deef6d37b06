"""Consistency checks of a plan."""

from typing import TYPE_CHECKING

from paceline.errors import InputError
from paceline.predictor.plan.plan_choices import Offload, PipelineSchedule, Recompute
from paceline.units import plural

if TYPE_CHECKING:
    from paceline.predictor.plan.plan import Plan


def check_consistent(plan: "Plan") -> None:
    """Reject inconsistent degrees and policies, independent of the network."""
    counts = ("dp", "tp", "pp", "cp", "ep", "etp", "interleave", "micro_batch", "micro_batches")
    for name in (*counts, "recompute_every"):
        value = getattr(plan, name)
        if value is not None and value < 1:
            raise InputError(f"{name} must be at least 1 (got {value})", "give a positive integer")
    if plan.zero not in (0, 1, 2, 3):
        raise InputError(
            f"zero must be 0, 1, 2 or 3 (got {plan.zero})",
            "0 shards nothing, 1 optimizer state, 2 gradients too, 3 weights too",
        )
    _check_experts(plan)
    _check_shard_group(plan)
    _check_choices(plan)
    if plan.recompute_every > 1 and plan.recompute is not Recompute.FULL:
        raise InputError(
            f"recompute_every {plan.recompute_every} needs full recomputation",
            "use --recompute every:2, or recompute=full with recompute_every",
        )
    if plan.recompute_modules and plan.recompute is not Recompute.SELECTIVE:
        raise InputError(
            f"recompute_modules need selective recomputation (got {plan.recompute})",
            "use --recompute with names of modules, such as mlp,layernorm",
        )
    _check_pipeline(plan)


def _check_pipeline(plan: "Plan") -> None:
    if plan.interleave > 1 and plan.pp == 1:
        raise InputError(f"interleave {plan.interleave} needs a pipeline", "add --pp 2 or more")
    if plan.interleave > 1 and plan.pipeline is PipelineSchedule.GPIPE:
        raise InputError(
            "gpipe supports one chunk per stage only", "use --pipeline 1f1b, or omit --interleave"
        )
    if plan.stage_layers and len(plan.stage_layers) != plan.chunks:
        raise InputError(
            f"{plural(len(plan.stage_layers), 'stage size')} for {plural(plan.chunks, 'chunk')} "
            f"(pp {plan.pp} x interleave {plan.interleave})",
            "give one number of blocks per chunk",
        )
    if plan.pipeline.splits_backward:
        _check_split_backward(plan)


def _check_split_backward(plan: "Plan") -> None:
    if plan.pp == 1:
        raise InputError(
            f"{plan.pipeline} needs a pipeline, but pp is 1",
            "add --pp 2, or omit --pipeline",
        )
    chunks = plan.pipeline.chunks_of_stage
    if plan.interleave != chunks:
        raise InputError(
            f"{plan.pipeline} needs {chunks} chunk{'s' * (chunks > 1)} per stage "
            f"(got interleave {plan.interleave})",
            f"use --interleave {chunks}",
        )
    if plan.zero >= 2:
        raise InputError(
            f"{plan.pipeline} with zero {plan.zero} is not supported",
            "use --zero 1, or --pipeline 1f1b",
        )


def _check_experts(plan: "Plan") -> None:
    """Reject divisions of experts that do not fit the devices of a pipeline stage."""
    stage, etp = plan.tp * plan.holders, plan.expert_tp
    if stage % (plan.ep * etp):
        divided = f"ep {plan.ep} x etp {etp}" if etp > 1 else f"ep {plan.ep}"
        hint = f"use degrees whose product divides tp x cp x dp = {stage}"
        if stage % plan.ep == 0 and plan.etp is None:
            hint += ", or add --sequence-parallel for whole experts (--etp 1)"
        raise InputError(f"{divided} does not divide tp x cp x dp = {stage}", hint)
    if plan.folds_experts and plan.tp > 1 and not plan.sequence_parallel:
        raise InputError(
            f"etp {etp} with tp {plan.tp} needs sequence parallelism, which divides the tokens",
            f"add --sequence-parallel, or use --etp {plan.tp}",
        )
    if plan.folds_experts and plan.holders == 1 and plan.expert_holders > 1:
        raise InputError(
            f"{plan.expert_holders} devices hold the same experts, but dp x cp is 1",
            f"use --ep {plan.tp // etp or 1}, or omit --etp",
        )
    if plan.ep_overlap:
        _check_expert_overlap(plan)


def _check_expert_overlap(plan: "Plan") -> None:
    """The all-to-all of one micro-batch overlaps computing of another one on the same device."""
    if plan.ep == 1:
        raise InputError("--ep-overlap needs expert parallelism, but ep is 1", "add --ep 2")
    if plan.pp > 1 and plan.interleave == 1:
        raise InputError(
            "--ep-overlap needs several chunks per pipeline stage",
            "add --interleave 2, or use --pipeline dualpipe",
        )
    if plan.pipeline is PipelineSchedule.DUALPIPE:
        raise InputError("dualpipe overlaps the all-to-all of experts already", "omit --ep-overlap")


def _check_shard_group(plan: "Plan") -> None:
    size = plan.shard_group
    if size is None:
        return
    if size < 2 or plan.holders % size or size % plan.cp:
        raise InputError(
            f"shard_group {size} does not fit dp x cp = {plan.holders} with cp {plan.cp}",
            f"use a divisor of {plan.holders} above 1 that is a multiple of cp {plan.cp}",
        )
    if plan.ep > 1 and plan.shard_copies > 1:
        raise InputError(
            f"shard_group {size} with ep {plan.ep} is not supported",
            "omit --shard-group or --ep",
        )


def _check_choices(plan: "Plan") -> None:
    if plan.cp_impl is not None and plan.cp == 1:
        raise InputError(
            f"--cp-impl {plan.cp_impl} needs context parallelism, but cp is 1",
            "add --cp 2, or omit --cp-impl",
        )
    if plan.expert_imbalance is not None:
        if plan.ep == 1:
            raise InputError(
                "expert_imbalance needs expert parallelism, but ep is 1",
                "add --ep 2, or omit --expert-imbalance",
            )
        if not 1.0 <= plan.expert_imbalance <= plan.ep:
            raise InputError(
                f"expert_imbalance must be from 1 to {plan.ep} (got {plan.expert_imbalance:g})",
                f"give 1 (balanced) to {plan.ep} (all load on one device)",
            )
    if Offload.ACTIVATIONS in plan.offload and plan.pp > 1:
        raise InputError(
            "--offload activations does not support pipelines",
            "omit --pp, or use --offload optimizer",
        )
    if Offload.WEIGHTS in plan.offload and plan.zero < 3:
        raise InputError(
            f"--offload weights needs sharded weights, but zero is {plan.zero}",
            "add --zero 3, or use --offload optimizer",
        )
    if plan.tp_overlap and not (plan.tp > 1 and plan.sequence_parallel):
        raise InputError(
            "--tp-overlap needs tensor and sequence parallelism",
            "add --tp 2 --sequence-parallel, or omit --tp-overlap",
        )
