"""Plan variants outside the vectorised search: cp, ep, shard groups, uneven stages."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import product
from math import inf

from paceline.errors import PacelineError
from paceline.predictor.memory.fit_probability import room_bytes
from paceline.predictor.memory.peak_memory import fullest, stage_memories
from paceline.predictor.partition.tensor_parallel import is_transformer
from paceline.predictor.plan.plan import Plan
from paceline.predictor.plan.plan_choices import SEARCHED_RECOMPUTATIONS, Recompute
from paceline.predictor.predict import model_step, prepare
from paceline.predictor.prediction_inputs import PredictionInputs
from paceline.predictor.search.plan_search import PlanSearch
from paceline.predictor.uncertainty.measured_scale import corrected_timeline
from paceline.workload.blocks import blocks
from paceline.workload.graph import Graph
from paceline.workload.ops import MixtureOfExperts

_DEGREES = (2, 4, 8, 16)
_STAGES = (1, 2, 4, 8, 16, 32)
_EXPERT_DEGREES = (8, 16, 32, 64)
_LEAST_TOKENS = 4096
"""Fewest tokens per context-parallel device."""
_MOST_STAGES = 64
_SOME_BLOCKS = (4, 3, 2)
"""Values of ``recompute_every`` that are tried."""
_TIGHT = 4
"""Plans that do not fit for which partial recomputation is tried."""


@dataclass(frozen=True)
class PlanVariation:
    """A plan with its seconds per step (infinite if not scheduled) and bytes on a device."""

    plan: Plan
    seconds: float
    memory_bytes: float


def variations(search: PlanSearch, plans: Sequence[Plan]) -> list[PlanVariation]:
    """Possible variations of ``plans``, and uneven pipelines, fastest first."""
    tried = [*_shared_out(search, plans), *_in_groups(search, plans), *_uneven(search)]
    found = list(possible_plans(search, tried))
    experts = possible_plans(search, _expert_layouts(search), only_fitting=True)
    found += [own for own in experts if own.seconds < inf]
    found += possible_plans(search, _some_again(search, [*possible_plans(search, plans), *found]))
    return sorted(found, key=lambda own: own.seconds)


def possible_plans(
    search: PlanSearch, plans: Iterable[Plan], *, only_fitting: bool = False
) -> Iterator[PlanVariation]:
    """The distinct valid plans, with tensor parallelism inside a node.

    With ``only_fitting`` only plans that fit are scheduled.
    """
    capacity = search.cluster.device.memory_bytes if only_fitting else None
    room = inf if capacity is None else room_bytes(capacity)
    for plan in dict.fromkeys(plans):
        allowed = search.fixed.allows(plan, search.global_batch)
        allowed &= plan.holders == 1 or plan.zero in search.stages
        if allowed and plan.tp <= search.cluster.devices_per_node:
            with suppress(PacelineError):
                step = model_step(job_of_plan(search, plan))
                memories = stage_memories(step.parts, step.communication.stage_counts)
                memory, seconds = float(fullest(memories).total_bytes), inf
                if memory <= room:
                    seconds = corrected_timeline(step, step.job.corrections).seconds
                yield PlanVariation(plan, seconds, memory)


def _some_again(search: PlanSearch, found: Iterable[PlanVariation]) -> Iterator[Plan]:
    """The fastest plans without recomputation that do not fit, with partial recomputation."""
    room = room_bytes(search.cluster.device.known_memory_bytes)
    tight: dict[tuple[int, ...], Plan] = {}
    for own in sorted(found, key=lambda own: own.seconds):
        plan = own.plan
        if own.memory_bytes > room and plan.recompute is Recompute.NONE and plan.zero <= 1:
            tight.setdefault((plan.tp, plan.pp, plan.cp, plan.ep), plan)
    for plan in list(tight.values())[:_TIGHT]:
        for every in _SOME_BLOCKS:
            yield replace(plan, recompute=Recompute.FULL, recompute_every=every)


def _shared_out(search: PlanSearch, plans: Sequence[Plan]) -> Iterator[Plan]:
    """Variations with context or expert parallelism."""
    sequence = search.workload.sequence or 0
    experts = most_experts(search.workload.graph)
    for plan in plans:
        for degree in _DEGREES:
            if sequence >= _LEAST_TOKENS * degree and plan.dp % degree == 0:
                shared = replace(plan, cp=degree, dp=plan.dp // degree)
                for zero in sorted({plan.zero, search.usual_stage}):
                    for recompute in SEARCHED_RECOMPUTATIONS:
                        yield replace(shared, zero=zero, recompute=recompute, micro_batch=1)
            if degree <= experts and plan.holders % degree == 0 and experts % degree == 0:
                for micro_batch in sorted({plan.micro_batch or 1, 1}):
                    yield replace(plan, ep=degree, zero=search.usual_stage, micro_batch=micro_batch)


def _in_groups(search: PlanSearch, plans: Sequence[Plan]) -> Iterator[Plan]:
    """Variations with shard groups of one node (HSDP)."""
    for plan in plans:
        size = search.cluster.devices_per_node // plan.tp
        if plan.zero >= 2 and 1 < size < plan.holders and plan.holders % size == 0:
            yield replace(plan, shard_group=size)


def most_experts(graph: Graph) -> int:
    """Largest number of experts of a layer; 1 without experts."""
    operations = (node.op for node in graph.nodes)
    return max((op.experts for op in operations if isinstance(op, MixtureOfExperts)), default=1)


def _expert_layouts(search: PlanSearch) -> Iterator[Plan]:
    """Pipelines with many expert-parallel devices, with tp 1 or tp of a node."""
    experts, devices = most_experts(search.workload.graph), search.cluster.devices
    if search.nodes and len(search.nodes) > 1:
        return
    for tp, pp, ep in product((1, search.cluster.devices_per_node), _STAGES, _EXPERT_DEGREES):
        dp = devices // (tp * pp)
        if experts % ep or devices % (tp * pp) or tp * dp % ep or search.global_batch % dp:
            continue
        layout = replace(search.like, tp=tp, pp=pp, dp=dp, zero=1, micro_batch=1)
        with suppress(PacelineError):
            folded = replace(layout, ep=ep, sequence_parallel=tp > 1)
            for recompute in (Recompute.NONE, Recompute.FULL):
                yield replace(folded, recompute=recompute)


def _uneven(search: PlanSearch) -> Iterator[Plan]:
    """Pipelines with different numbers of blocks per stage."""
    graph, devices = search.workload.graph, search.cluster.devices
    node, count = search.cluster.devices_per_node, len(blocks(graph))
    if not is_transformer(graph) or (search.nodes and len(search.nodes) > 1):
        return
    for tp in sorted({node, max(1, node // 2)}):
        for pp in (*_DEGREES, 32, 64):
            if count % pp == 0 or pp > min(count, _MOST_STAGES) or devices % (tp * pp):
                continue
            dp = devices // (tp * pp)
            if search.global_batch % dp:
                continue
            plan = replace(
                search.like, tp=tp, pp=pp, dp=dp, micro_batch=1, sequence_parallel=tp > 1
            )
            rounds = search.global_batch // dp % pp == 0 and search.space.interleaves
            for interleave in (1, 2, 4) if rounds else (1,):
                for recompute in SEARCHED_RECOMPUTATIONS:
                    yield replace(
                        plan,
                        interleave=interleave,
                        recompute=recompute,
                        zero=search.usual_stage if dp > 1 else 0,
                    )


def job_of_plan(search: PlanSearch, plan: Plan) -> PredictionInputs:
    """The inputs of a prediction of a plan for the job of a search."""
    workload = search.workload.with_batch(search.global_batch // plan.dp)
    cluster = search.cluster.with_devices(plan.devices)
    return prepare(workload, cluster, plan, efficiency=search.efficiency, program=search.program)
