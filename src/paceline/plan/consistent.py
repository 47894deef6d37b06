"""Plans whose own parts contradict each other are refused, with what would be possible."""

from typing import TYPE_CHECKING

from paceline.errors import InputError
from paceline.plan.choices import Offload, PipelineSchedule, Recompute

if TYPE_CHECKING:
    from paceline.plan.plan import Plan


def check_consistent(plan: "Plan") -> None:
    """Refuse degrees and policies that contradict each other, whatever the network."""
    counts = ("dp", "tp", "pp", "cp", "ep", "interleave", "micro_batch", "micro_batches")
    for name in (*counts, "recompute_every"):
        value = getattr(plan, name)
        if value is not None and value < 1:
            raise InputError(f"{name} must be at least 1, not {value}", "count from one")
    if plan.zero not in (0, 1, 2, 3):
        raise InputError(
            f"there is no stage {plan.zero} of sharded data parallelism",
            "0 shards nothing, 1 optimiser state, 2 gradients too, 3 weights too",
        )
    if (plan.dp * plan.cp) % plan.ep:
        raise InputError(
            f"ep {plan.ep} does not divide dp x cp = {plan.dp * plan.cp}",
            "experts are shared out among data-parallel devices; take a divisor",
        )
    _check_shard_group(plan)
    _check_choices(plan)
    if plan.recompute_every > 1 and plan.recompute is not Recompute.FULL:
        raise InputError(
            f"every {plan.recompute_every} blocks compute again with full recomputation only",
            "take --recompute every:2, or recompute=full beside recompute_every",
        )
    _check_pipeline(plan)


def _check_pipeline(plan: "Plan") -> None:
    if plan.interleave > 1 and plan.pp == 1:
        raise InputError(
            f"interleave {plan.interleave} needs a pipeline", "give --pp above 1 as well"
        )
    if plan.interleave > 1 and plan.pipeline is PipelineSchedule.GPIPE:
        raise InputError(
            "gpipe runs one chunk per stage", "interleave with --pipeline 1f1b, or not at all"
        )
    if plan.stage_layers and len(plan.stage_layers) != plan.chunks:
        raise InputError(
            f"{len(plan.stage_layers)} stage sizes for {plan.chunks} chunks "
            f"(pp {plan.pp} x interleave {plan.interleave})",
            "give one number of blocks per chunk",
        )
    if plan.pipeline.splits_backward:
        _check_split_backward(plan)


def _check_split_backward(plan: "Plan") -> None:
    if plan.pp == 1:
        raise InputError(
            f"{plan.pipeline} is an order of pipeline stages, and pp is 1",
            "add --pp 2, or leave --pipeline out",
        )
    chunks = plan.pipeline.chunks_of_stage
    if plan.interleave != chunks:
        raise InputError(
            f"{plan.pipeline} runs {chunks} chunk{'s' * (chunks > 1)} per stage, not "
            f"{plan.interleave}",
            f"give --interleave {chunks}",
        )
    if plan.zero >= 2:
        raise InputError(
            f"{plan.pipeline} with zero {plan.zero}: gradients of inputs and of weights would "
            "each gather or scatter, which is not modelled",
            "take --zero 1, or --pipeline 1f1b",
        )


def _check_shard_group(plan: "Plan") -> None:
    size = plan.shard_group
    if size is None:
        return
    if size < 2 or plan.holders % size or size % plan.cp:
        raise InputError(
            f"groups of {size} cannot share out weights among dp x cp = {plan.holders}",
            f"take a divisor of {plan.holders} above 1 that is a multiple of cp {plan.cp}",
        )
    if plan.ep > 1 and plan.shard_copies > 1:
        raise InputError(
            f"shard_group {size} with ep {plan.ep}: experts that are shared out have other "
            "copies than the rest, which is not modelled",
            "leave --shard-group or --ep out",
        )


def _check_choices(plan: "Plan") -> None:
    if plan.context_form is not None and plan.cp == 1:
        raise InputError(
            f"the form {plan.context_form} is of context parallelism, and cp is 1",
            "add --cp 2, or leave --cp-form out",
        )
    if plan.expert_imbalance is not None:
        if plan.ep == 1:
            raise InputError(
                "expert_imbalance is between devices that share out experts, and ep is 1",
                "add --ep 2, or leave --expert-imbalance out",
            )
        if not 1.0 <= plan.expert_imbalance <= plan.ep:
            raise InputError(
                f"the busiest of {plan.ep} devices cannot have {plan.expert_imbalance:g} times "
                "the mean load",
                f"give 1 (all alike) to {plan.ep} (one has everything)",
            )
    if Offload.ACTIVATIONS in plan.offload and plan.pp > 1:
        raise InputError(
            "offload of activations is of whole passes, not of pipeline stages, as in programs",
            "leave --pp out, or take --offload optimiser",
        )
    if plan.tp_overlap and not (plan.tp > 1 and plan.sequence_parallel):
        raise InputError(
            "tp_overlap hides the gathers and scatters of sequence parallelism",
            "add --tp 2 --sequence-parallel, or leave --tp-overlap out",
        )
