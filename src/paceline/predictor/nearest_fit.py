"""The smallest change of a plan with which a job fits in device memory."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

from paceline.errors import PacelineError
from paceline.predictor.memory.fit_probability import room_bytes
from paceline.predictor.memory.peak_memory import fullest, stage_memories
from paceline.predictor.plan.plan import Plan
from paceline.predictor.plan.plan_choices import LossKernel, Offload, Recompute
from paceline.predictor.plan.validate_for_model import check_recomputation
from paceline.predictor.predict import job_of, model_step
from paceline.predictor.prediction_inputs import PredictionInputs

_MOST_PAIRS = 24


@dataclass(frozen=True)
class PlanChange:
    """Options that change a plan, as typed on the command line, and the memory that results."""

    options: str
    memory_bytes: float


def nearest_fit(job: PredictionInputs) -> PlanChange | None:
    """The first of an ordered list of changes with which ``job`` fits, then of their pairs.

    Changes that cost no time come first. None if no change or pair fits, or if the memory of the
    device is unknown.
    """
    capacity = job.cluster.device.memory_bytes
    if capacity is None:
        return None
    singles = list(_changes(job))
    # Savings of two changes add up at most, so pairs of large savings are the ones to try.
    pairs = [{**a, **b} for a, b in combinations(singles, 2) if not {*a} & {*b}]
    for change in [*singles, *pairs[:_MOST_PAIRS]]:
        needed = _memory_bytes(job, change)
        if needed is not None and needed <= room_bytes(capacity):
            return PlanChange(" ".join(_option(job.plan, change)), needed)
    return None


def _changes(job: PredictionInputs) -> Iterator[dict[str, Any]]:
    plan, workload = job.plan, job.workload
    micro_batch, _ = plan.batches(workload.batch)
    is_text = bool(workload.graph.dimensions.get("vocabulary"))
    kernel = plan.loss_kernel or job.framework.loss_kernel
    if micro_batch > 1:
        yield {"micro_batch": 1, "micro_batches": None}
    if plan.holders > 1 and plan.zero < 1:
        yield {"zero": 1}
    if plan.tp > 1 and not plan.sequence_parallel:
        yield {"sequence_parallel": True}
    if is_text and kernel is LossKernel.PLAIN:
        yield {"loss_kernel": LossKernel.FUSED}
    if is_text and kernel is not LossKernel.CHUNKED:
        yield {"loss_kernel": LossKernel.CHUNKED}
    if plan.recompute is not Recompute.FULL or plan.recompute_every > 1:
        if plan.recompute is Recompute.NONE:
            yield {"recompute": Recompute.FULL, "recompute_every": 2}
        yield {"recompute": Recompute.FULL, "recompute_every": 1, "recompute_modules": ()}
    if plan.holders > 1 and plan.zero < 3 and not plan.pipeline.splits_backward:
        yield {"zero": 3}
    tp = 2 * plan.tp
    if plan.dp % 2 == 0 and tp <= job.cluster.devices_per_node:
        yield {"tp": tp, "dp": plan.dp // 2, "micro_batch": micro_batch, "micro_batches": None}
    if plan.dp % 2 == 0 and plan.cp == 1:
        yield {"pp": 2 * plan.pp, "dp": plan.dp // 2, "micro_batch": 1, "micro_batches": None}
    if Offload.OPTIMIZER not in plan.offload:
        yield {"offload": tuple(sorted({*plan.offload, Offload.OPTIMIZER}))}
    if plan.zero == 3 and Offload.WEIGHTS not in plan.offload:
        yield {"offload": tuple(sorted({*plan.offload, Offload.OPTIMIZER, Offload.WEIGHTS}))}


def _memory_bytes(job: PredictionInputs, change: Mapping[str, Any]) -> float | None:
    """Memory of the fullest device with a change; None if the changed plan is rejected."""
    try:
        plan = replace(job.plan, **change)
        check_recomputation(plan, job.workload.graph)
        step = model_step(job_of(job.workload, job.cluster, plan))
    except PacelineError:
        return None
    return float(fullest(stage_memories(step.parts, step.communication.stage_counts)).total_bytes)


def _option(plan: Plan, change: Mapping[str, Any]) -> Iterator[str]:
    """Options of a change; ``dp`` follows, and unchanged values are left out."""
    changed = replace(plan, **change)
    for name in change:
        value = getattr(changed, name)
        if name in ("dp", "micro_batches", "recompute_every", "recompute_modules"):
            continue
        if value == getattr(plan, name) and name != "recompute":
            continue
        option = f"--{name.replace('_', '-')}"
        if name == "recompute":
            yield f"{option} {changed.format_recompute}"
        elif value is True:
            yield option
        else:
            yield f"{option} {','.join(value) if isinstance(value, tuple) else value}"
