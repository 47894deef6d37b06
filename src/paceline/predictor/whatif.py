"""What-if analysis: the step with faster or free resources, or with other plans."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from paceline.errors import PacelineError
from paceline.hardware import Cluster, Device, Link
from paceline.hardware.scaled import faster_arithmetic, faster_link, faster_memory, wider_link
from paceline.predictor.comm.compression import Compression, CompressionKind
from paceline.predictor.partition.tensor_parallel import common_size, is_transformer
from paceline.predictor.plan.plan import Plan
from paceline.predictor.plan.plan_choices import SEARCHED_RECOMPUTATIONS, PipelineSchedule
from paceline.predictor.plan.sync_policy import MIB, Policy, Synchronisation
from paceline.predictor.predict import predict_job, reference_step
from paceline.predictor.prediction import Prediction
from paceline.predictor.prediction_inputs import PredictionInputs
from paceline.predictor.uncertainty.applied_corrections import apply_corrections, slowest_factor
from paceline.predictor.uncertainty.measured_scale import measured_scale

_LEAST_SPEED_UP = 1.005
"""Smaller ones are printed as 1.00."""
_ACCUMULATED = 4
"""Factor on the micro-batches per step that is tried."""
_LARGEST_TP = 8
_FREE = 1e9
"""Speed-up that makes the time of a resource negligible."""


@dataclass(frozen=True)
class WhatIf:
    """One change and the resulting step in seconds. ``fits``: whether the plan fits in memory."""

    kind: str
    change: str
    step_seconds: float
    base_seconds: float
    fits: bool | None

    @property
    def speed_up(self) -> float:
        """Step before over step after; above 1 is a gain."""
        return self.base_seconds / self.step_seconds

    @property
    def saved_seconds(self) -> float:
        """Seconds per step that the change saves."""
        return self.base_seconds - self.step_seconds


def what_if(job: PredictionInputs) -> list[WhatIf]:
    """Every change that applies to a job, the largest gain of each kind first.

    Resources are made twice as fast and free; a free resource bounds the gain of any improvement.
    Optimisations are other plans on the same machine, predicted in full; steps of another number
    of samples are scaled to that of the job.
    """
    case = with_fixed_work(job)
    base = predict_job(case)
    found = [
        WhatIf("resource", change, other.step_seconds, base.step_seconds, other.fits)
        for change, other in _predicted(_resources(case))
    ]
    found += [
        WhatIf(
            "optimisation",
            change,
            other.step_seconds * base.samples_per_step / other.samples_per_step,
            base.step_seconds,
            other.fits,
        )
        for change, other in _predicted(_optimisations(case))
    ]
    return sorted(found, key=lambda item: (item.kind != "resource", item.step_seconds))


def worthwhile(found: Sequence[WhatIf], fits: bool | None) -> list[WhatIf]:
    """Changes that save time and fit, or make a plan fit that does not (``fits`` is False)."""
    return [
        own
        for own in found
        if (own.speed_up >= _LEAST_SPEED_UP and (fits is False or own.fits is not False))
        or (fits is False and own.fits is True)
    ]


def with_fixed_work(job: PredictionInputs) -> PredictionInputs:
    """The same job with fixed layer times instead of evidence and corrections of them.

    Changes of device or plan then take effect instead of being scaled back to the evidence.
    """
    scale = measured_scale(job, reference_step(job), job.corrections)
    factors = apply_corrections(job, job.corrections, scale)
    evidence = replace(job.evidence, alone_seconds=None, baseline=None)
    return replace(job, evidence=evidence, scale=factors.work_scale * factors.modelled_factor)


def _predicted(cases: Iterator[tuple[str, PredictionInputs]]) -> Iterator[tuple[str, Prediction]]:
    """Predictions of the valid cases (an interleave may not divide the layers)."""
    for change, case in cases:
        try:
            yield change, predict_job(case)
        except PacelineError:
            continue


def _resources(case: PredictionInputs) -> Iterator[tuple[str, PredictionInputs]]:
    cluster = case.cluster
    device = cluster.device
    changes: dict[str, Callable[[float], PredictionInputs]] = {}
    if device.peak_flops:
        changes["arithmetic"] = lambda k: _on(case, device=faster_arithmetic(device, k))
    if device.memory_bandwidth is not None:
        changes["device memory"] = lambda k: _on(case, device=faster_memory(device, k))
    changes["framework overhead"] = lambda k: _with_less_overhead(case, k)
    if cluster.intra is not None and cluster.devices_per_node > 1:
        inside = cluster.intra
        changes[f"links in a node ({inside.name})"] = lambda k: _on(
            case, intra=faster_link(inside, k)
        )
    if cluster.inter is not None and cluster.nodes > 1:
        across = cluster.inter
        changes[f"network ({across.name})"] = lambda k: _on(case, inter=faster_link(across, k))
    if case.input_seconds > 0:
        changes["input"] = lambda k: replace(case, input_seconds=case.input_seconds / k)
    for name, change in changes.items():
        yield f"{name} twice as fast", change(2.0)
        yield f"{name} free", change(_FREE)
    if slowest_factor(case, case.corrections) > 1:
        calm = replace(case.evidence, spread=0.0, colocation={})
        yield "all workers equally fast", replace(case, evidence=calm)


def _optimisations(case: PredictionInputs) -> Iterator[tuple[str, PredictionInputs]]:
    plan = case.plan
    if plan.holders > 1:
        for change, synchronisation in _synchronisations(
            plan.synchronisation or case.framework.synchronisation
        ).items():
            yield change, _with_plan(case, replace(plan, synchronisation=synchronisation))
        yield (
            "gradients sent as fp16",
            _with_plan(case, replace(plan, compression=Compression(CompressionKind.FP16))),
        )
        yield (
            "1 % of gradients sent (top-k)",
            _with_plan(case, replace(plan, compression=Compression(CompressionKind.TOP_K))),
        )
    for recompute in SEARCHED_RECOMPUTATIONS:
        if recompute is not plan.recompute or plan.recompute_every > 1:
            yield (
                f"recompute {recompute}",
                _with_plan(case, replace(plan, recompute=recompute, recompute_every=1)),
            )
    yield from _sharding(case, plan)
    yield from _batches(case, plan)
    device = case.cluster.device
    if case.workload.precision == "fp32" and "bf16" in device.peak_flops:
        yield "precision bf16", replace(case, workload=replace(case.workload, precision="bf16"))
    if plan.tp > 1 and not plan.sequence_parallel:
        yield "sequence parallel", _with_plan(case, replace(plan, sequence_parallel=True))
    if plan.pp > 1:
        yield from _pipelines(case, plan)


def _sharding(case: PredictionInputs, plan: Plan) -> Iterator[tuple[str, PredictionInputs]]:
    """Other ZeRO stages, shard groups of a node, and tensor parallelism inside a node."""
    cluster, shards = case.cluster, case.framework.shard_stage
    for zero in (1, 3):
        if plan.holders > 1 and zero != plan.zero and not shards:
            with suppress(PacelineError):  # split backward passes need stage 0 or 1
                own = replace(plan, zero=zero, shard_group=None)
                yield f"ZeRO stage {zero}", _with_plan(case, own)
    size = cluster.devices_per_node // (plan.tp * plan.cp)
    grouped = plan.shard_copies > 1 or plan.zero < 2 or cluster.nodes == 1
    if not grouped and 1 < size < plan.holders and plan.holders % size == 0:
        yield f"shard groups of {size} (HSDP)", _with_plan(case, replace(plan, shard_group=size))
    graph = case.workload.graph
    tp = math.gcd(common_size(graph), cluster.devices_per_node, _LARGEST_TP)
    if plan.tp == 1 < tp and is_transformer(graph) and plan.dp % tp == 0 and plan.ep == 1:
        own = replace(plan, tp=tp, dp=plan.dp // tp, shard_group=None, micro_batches=None)
        own = replace(own, sequence_parallel=True, zero=plan.zero if own.holders > 1 else 0)
        workload = case.workload.with_batch(case.workload.batch * tp)
        yield f"tensor parallelism {tp} in a node", replace(case, workload=workload, plan=own)


def _batches(case: PredictionInputs, plan: Plan) -> Iterator[tuple[str, PredictionInputs]]:
    """Larger micro-batches, and more micro-batches per exchange of gradients."""
    batch = case.workload.batch
    size, count = plan.batches(batch)
    if count % 2 == 0:
        larger = replace(plan, micro_batch=2 * size, micro_batches=None)
        yield f"micro-batches of {2 * size}", _with_plan(case, larger)
    elif count == 1:
        more = replace(plan, micro_batch=None, micro_batches=None)
        workload = case.workload.with_batch(2 * batch)
        yield f"batch of {2 * batch} per replica", replace(case, plan=more, workload=workload)
    if plan.holders > 1:
        several = replace(plan, micro_batch=size, micro_batches=None)
        workload = case.workload.with_batch(_ACCUMULATED * batch)
        change = f"{_ACCUMULATED * count} micro-batches of {size} per step (no_sync)"
        yield change, replace(case, plan=several, workload=workload)


def _synchronisations(current: Synchronisation) -> Mapping[str, Synchronisation]:
    """Other policies, and other bucket sizes if there are buckets."""
    changes = {
        f"synchronise: {policy}": replace(current, policy=policy)
        for policy in Policy
        if policy is not current.policy
    }
    if current.policy is Policy.BUCKETED:
        for size in (1, 5, 100):
            changes[f"buckets of {size} MiB"] = current.with_bucket(size * MIB)
    return changes


def _pipelines(case: PredictionInputs, plan: Plan) -> Iterator[tuple[str, PredictionInputs]]:
    for chunks in (2, 4):
        if plan.pipeline is PipelineSchedule.ONE_F_ONE_B and chunks != plan.interleave:
            even = replace(plan, interleave=chunks, stage_layers=())  # sizes are given per chunk
            yield f"interleave {chunks}", _with_plan(case, even)
    micro_batch, count = plan.batches(case.workload.batch)
    if micro_batch % 2 == 0:
        halved = replace(plan, micro_batch=micro_batch // 2, micro_batches=2 * count)
        yield f"micro-batches of {micro_batch // 2}", _with_plan(case, halved)


def _with_plan(case: PredictionInputs, plan: Plan) -> PredictionInputs:
    return replace(case, plan=plan)


def on_links(case: PredictionInputs, factor: float, *, between: bool) -> PredictionInputs:
    """The same job with faster links between nodes or inside nodes."""
    link = case.cluster.inter if between else case.cluster.intra
    assert link is not None
    quicker = wider_link(link, factor)
    return _on(case, inter=quicker) if between else _on(case, intra=quicker)


def _on(
    case: PredictionInputs,
    device: Device | None = None,
    intra: Link | None = None,
    inter: Link | None = None,
) -> PredictionInputs:
    cluster: Cluster = case.cluster
    changed = replace(
        cluster,
        device=device or cluster.device,
        intra=intra or cluster.intra,
        inter=inter or cluster.inter,
    )
    return replace(case, cluster=changed)


def _with_less_overhead(case: PredictionInputs, factor: float) -> PredictionInputs:
    framework = case.framework
    quicker = replace(
        framework,
        dispatch_seconds=framework.dispatch_seconds / factor,
        step_overhead_seconds=framework.step_overhead_seconds / factor,
        message_overhead_seconds=framework.message_overhead_seconds / factor,
        message_latency_seconds=framework.message_latency_seconds / factor,
        tensor_overhead_seconds=framework.tensor_overhead_seconds / factor,
    )
    return replace(case, framework=quicker)
