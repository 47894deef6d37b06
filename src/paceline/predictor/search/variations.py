"""Plans that the arrays do not hold: cp and ep, shards inside nodes, stages of unequal size."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from paceline.errors import PacelineError
from paceline.plan.choices import SEARCHED_RECOMPUTATIONS
from paceline.plan.plan import Plan
from paceline.plan.tensor_parallel import is_transformer
from paceline.predictor.plan_memory import plan_memory
from paceline.predictor.predict import prepare
from paceline.predictor.search.plans import PlanSearch
from paceline.workload.blocks import blocks
from paceline.workload.ops import MixtureOfExperts
from paceline.workload.ops.base import Op

_DEGREES = (2, 4, 8, 16)
_LONG_SAMPLES = 16_384
"""Tokens of a sample from which on its tokens may be shared out among devices."""
_MOST_STAGES = 64


@dataclass(frozen=True)
class PlanVariation:
    """A plan with its seconds per step and the bytes of its fullest device."""

    plan: Plan
    seconds: float
    memory_bytes: float


def variations(search: PlanSearch, plans: Sequence[Plan]) -> list[PlanVariation]:
    """Variations of ``plans``, and stages of unequal size, that are possible; fast ones first."""
    found = []
    tried = [*_shared_out(search, plans), *_in_groups(search, plans), *_uneven(search)]
    for plan in dict.fromkeys(tried):
        try:
            found.append(_evaluated(search, plan))
        except PacelineError:
            continue
    return sorted(found, key=lambda own: own.seconds)


def _shared_out(search: PlanSearch, plans: Sequence[Plan]) -> Iterator[Plan]:
    """Replicas that share out the tokens of a sample, or experts."""
    sequence = search.workload.sequence or 0
    experts = max(
        (op.experts for op in _operations(search) if isinstance(op, MixtureOfExperts)), default=1
    )
    for plan in plans:
        for degree in _DEGREES:
            if sequence >= _LONG_SAMPLES and plan.dp % degree == 0:
                shared = replace(plan, cp=degree, dp=plan.dp // degree)
                for zero in sorted({plan.zero, 1}):
                    for recompute in SEARCHED_RECOMPUTATIONS:
                        yield replace(shared, zero=zero, recompute=recompute, micro_batch=1)
            if degree <= experts and plan.holders % degree == 0 and experts % degree == 0:
                for micro_batch in sorted({plan.micro_batch or 1, 1}):
                    yield replace(plan, ep=degree, zero=1, micro_batch=micro_batch)


def _in_groups(search: PlanSearch, plans: Sequence[Plan]) -> Iterator[Plan]:
    """Sharded gradients and weights that stay inside a node, copied on the others."""
    for plan in plans:
        size = search.cluster.devices_per_node // plan.tp
        if plan.zero >= 2 and 1 < size < plan.holders and plan.holders % size == 0:
            yield replace(plan, shard_group=size)


def _operations(search: PlanSearch) -> Iterator[Op]:
    return (node.op for node in search.workload.graph.nodes)


def _uneven(search: PlanSearch) -> Iterator[Plan]:
    """Pipelines whose stages do not all have the same number of blocks."""
    graph, devices, node = (
        search.workload.graph,
        search.cluster.devices,
        (search.cluster.devices_per_node),
    )
    count = len(blocks(graph))
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
                        zero=1 if dp > 1 else 0,
                    )


def _evaluated(search: PlanSearch, plan: Plan) -> PlanVariation:
    """A plan without an interval."""
    workload = search.workload.with_batch(search.global_batch // plan.dp)
    cluster = search.cluster.with_devices(plan.devices)
    prepared = prepare(workload, cluster, plan, efficiency=search.efficiency)
    memory = plan_memory(prepared.replica, prepared.chunks, prepared.synchronisation)
    return PlanVariation(plan, prepared.seconds(), float(memory.total_bytes))
