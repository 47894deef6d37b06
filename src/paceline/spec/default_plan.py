"""The plan of a large model that the user does not state: the simplest within the error margin.

A quick search: programs and degrees from the simplest to those with the least memory, each with
the fastest micro-batch that fits. ``paceline advise`` searches all plans.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from paceline.errors import PacelineError
from paceline.hardware import Cluster
from paceline.predictor.framework_profiles import framework as find_framework
from paceline.predictor.memory.fit_probability import LIKELY, fits_in
from paceline.predictor.partition.tensor_parallel import common_size, is_transformer
from paceline.predictor.plan.plan import Plan
from paceline.predictor.plan.plan_choices import Recompute
from paceline.predictor.predict import predict
from paceline.predictor.search.plan_constraints import split_plan_fields
from paceline.predictor.search.plan_ranking import plan_effort, simplest_first
from paceline.predictor.search.plan_search import PlanSearch
from paceline.predictor.search.plan_variants import PlanVariation, most_experts, possible_plans
from paceline.spec.job_options import JobOptions
from paceline.spec.program_defaults import DDP, FSDP, MEGATRON
from paceline.spec.resolve_plan import plan_fields
from paceline.spec.resolve_workload import workload_of
from paceline.workload.blocks import blocks
from paceline.workload.graph import Graph

_LARGEST_TP = 8
"""Devices per node of common clusters: larger tp would communicate between nodes."""
_LARGEST_EP = 64
"""Devices over which published trainings divide experts (DeepSeek-V3)."""
_MEGATRON_PARAMETERS = 100e9
"""Parameters above which published trainings use Megatron-LM (GPT-3 175B, MT-NLG, Llama 3 405B)."""
_LARGEST_MICRO_BATCH = 64
_POSSIBLE = 0.5
"""Least probability that a plan fits."""
_CLOSE = 1.3
"""Step over the fastest one up to which a simpler plan is compared."""
_COMPARED = 4
_MOST_SPARE_STAGES = 4
"""Pipeline stages that are tried even if fewer fit."""
_RECOMPUTATIONS = (Recompute.NONE, Recompute.OPERATION, Recompute.FULL)
"""Policies from the fastest to the one with the least memory; Megatron-LM has no second one."""


@dataclass(frozen=True)
class ChosenPlan:
    """The chosen plan, and whether it fits."""

    plan: Plan
    fits: bool


def choose_plan(
    graph: Graph, cluster: Cluster, options: JobOptions, global_batch: int
) -> ChosenPlan | None:
    """The simplest plan within the error margin of the fastest one; None if none is possible.

    ``options`` fix fields of the plan. If no plan fits, the one with the least memory.
    """
    fields = plan_fields(options)
    names = [fields["framework"]] if "framework" in fields else _programs(graph, cluster, fields)
    replica: JobOptions = {**options, "batch": 1, "global_batch": None}
    tried: list[PlanVariation] = []
    for name in names:
        shared, fixed = split_plan_fields({**fields, "framework": name})
        search = PlanSearch(
            workload_of(graph, 1, replica),
            cluster,
            global_batch,
            like=Plan(**shared),
            fixed=fixed,
        )
        found = list(_families(search, fields))
        tried += found
        for probability in (LIKELY, _POSSIBLE):
            roomy = [own for own in found if _fits(own, cluster, probability)]
            if roomy:
                return ChosenPlan(_simplest(search, roomy), True)
    if not tried:
        return None
    return ChosenPlan(min(tried, key=lambda own: own.memory_bytes).plan, False)


def _programs(graph: Graph, cluster: Cluster, fields: Mapping[str, Any]) -> list[str]:
    """Programs to try: DDP, FSDP, then Megatron-LM for transformers, or first for large ones."""
    divided = any(fields.get(name, 1) > 1 for name in ("tp", "pp", "cp", "ep"))
    transformer, large = is_transformer(graph), graph.profile(None, "fp32").parameters
    if fields.get("zero") == 3 and fields.get("tp", 1) == fields.get("pp", 1) == 1:
        return [FSDP]
    if divided:
        return [MEGATRON if transformer else DDP]
    if cluster.devices == 1 or "zero" in fields:
        return [DDP]
    if transformer and (large > _MEGATRON_PARAMETERS or most_experts(graph) > 1):
        return [MEGATRON, FSDP]  # FSDP has no expert parallelism: it gathers all experts
    return [DDP, FSDP, *([MEGATRON] if transformer else [])]


def _families(search: PlanSearch, fields: Mapping[str, Any]) -> Iterator[PlanVariation]:
    """Plans of one program: without division first, then inside a node, then pipelines.

    On several nodes, pipelines of up to one stage per node are tried even if fewer fit: they
    communicate least over a slow network.
    """
    cluster, cp = search.cluster, fields.get("cp", 1)
    for tp in dict.fromkeys(_tensor_degrees(search, fields)):
        roomy = False
        for pp in _stages(search, fields, tp * cp):
            dp = cluster.devices // (tp * cp * pp)
            if dp * tp * cp * pp != cluster.devices or search.global_batch % dp:
                continue
            if fields.get("dp", dp) != dp:
                continue
            degrees = {"dp": dp, "tp": tp, "cp": cp, "pp": pp}
            own = [
                one
                for ep in _expert_degrees(search, fields, tp * dp)
                for one in _of_degrees(search, fields, {**degrees, "ep": ep})
            ]
            yield from own
            roomy |= any(_fits(one, cluster, LIKELY) for one in own)
            if roomy and pp >= min(cluster.nodes, _MOST_SPARE_STAGES):
                break
        if roomy and cluster.nodes == 1:
            return


def _tensor_degrees(search: PlanSearch, fields: Mapping[str, Any]) -> list[int]:
    graph, cluster = search.workload.graph, search.cluster
    if "tp" in fields:
        return [fields["tp"]]
    if search.like.framework == DDP or not is_transformer(graph):
        return [1]
    return [1, math.gcd(common_size(graph), cluster.devices_per_node, _LARGEST_TP)]


def _stages(search: PlanSearch, fields: Mapping[str, Any], within: int) -> list[int]:
    if "pp" in fields:
        return [fields["pp"]]
    if search.like.framework == DDP or not is_transformer(search.workload.graph):
        return [1]
    most = min(search.cluster.devices // within, len(blocks(search.workload.graph)))
    return [2**power for power in range(max(0, most).bit_length()) if 2**power <= most]


def _expert_degrees(search: PlanSearch, fields: Mapping[str, Any], holders: int) -> list[int]:
    """Expert-parallel degrees: none, inside a node, and of large groups."""
    if "ep" in fields:
        return [fields["ep"]]
    experts = most_experts(search.workload.graph)
    if experts == 1 or search.like.framework != MEGATRON:
        return [1]
    sizes = (search.cluster.devices_per_node, _LARGEST_EP)
    return sorted({1, *(math.gcd(experts, holders, size) for size in sizes)})


def _of_degrees(
    search: PlanSearch, fields: Mapping[str, Any], degrees: Mapping[str, int]
) -> Iterator[PlanVariation]:
    """Shard stages, shard groups and recomputations; more recomputation only if memory needs it."""
    holders = degrees["dp"] * degrees["cp"]
    for zero in _zero_stages(search, fields, degrees):
        groups: list[int | None] = [fields.get("shard_group")]
        size = search.cluster.devices_per_node // (degrees["tp"] * degrees["cp"])
        if groups == [None] and zero >= 2 and 1 < size < holders and holders % size == 0:
            groups.append(size)
        for group in groups:
            for recompute in _recomputations(search, fields):
                own = {**search.fixed.added, **degrees, **recompute}
                own |= {"zero": zero, "shard_group": group, **_sequence_parallel(search, fields)}
                found = list(_micro_batches(search, fields, own))
                yield from found
                if any(_fits(one, search.cluster, LIKELY) for one in found):
                    break


def _zero_stages(
    search: PlanSearch, fields: Mapping[str, Any], degrees: Mapping[str, int]
) -> list[int]:
    if "zero" in fields:
        return [fields["zero"]]
    if degrees["dp"] * degrees["cp"] == 1:
        return [0]
    program = find_framework(search.like.framework or DDP)
    stage = program.shard_stage
    undivided = degrees["tp"] == degrees["pp"] == 1
    if stage:
        return [stage]
    if search.like.framework == DDP:
        return [0]
    if undivided and program.synchronisation == find_framework(DDP).synchronisation:
        return [0, 3]  # trainers that use DDP, and FSDP where memory needs it
    return [1]


def _recomputations(search: PlanSearch, fields: Mapping[str, Any]) -> list[dict[str, Any]]:
    if "recompute" in fields or "recompute_every" in fields:
        return [{name: fields[name] for name in ("recompute", "recompute_every") if name in fields}]
    by_operation = search.like.framework in (DDP, FSDP)
    policies = _RECOMPUTATIONS if by_operation else (Recompute.NONE, Recompute.FULL)
    return [{"recompute": each} for each in policies]


def _sequence_parallel(search: PlanSearch, fields: Mapping[str, Any]) -> dict[str, bool]:
    if "sequence_parallel" in fields:
        return {"sequence_parallel": fields["sequence_parallel"]}
    return {}


def _micro_batches(
    search: PlanSearch, fields: Mapping[str, Any], own: dict[str, Any]
) -> Iterator[PlanVariation]:
    """Growing micro-batches of one plan while they fit and the step gets shorter."""
    share = search.global_batch // own["dp"]
    sizes = [2**power for power in range(_LARGEST_MICRO_BATCH.bit_length())]
    if "micro_batch" in fields:
        sizes = [fields["micro_batch"]]
    elif "micro_batches" in fields:
        sizes = [max(1, share // fields["micro_batches"])]
    best = math.inf
    for size in sizes:
        if share % size:
            return
        tensor = own["tp"] > 1 and is_transformer(search.workload.graph)
        shape = {"sequence_parallel": tensor, **own, "micro_batch": size}
        try:
            plan = replace(search.like, **shape)
        except PacelineError:
            return
        found = list(possible_plans(search, [plan], only_fitting=True))
        yield from found
        if not found or not _fits(found[0], search.cluster, _POSSIBLE) or found[0].seconds > best:
            return
        best = found[0].seconds


def _fits(own: PlanVariation, cluster: Cluster, probability: float) -> bool:
    likely = fits_in(own.memory_bytes, cluster.device.memory_bytes)
    return likely is None or likely >= probability


def _simplest(search: PlanSearch, roomy: Sequence[PlanVariation]) -> Plan:
    """The simplest of the plans that the fastest one does not clearly beat."""
    fastest = min(own.seconds for own in roomy)
    near = [own for own in roomy if own.seconds <= _CLOSE * fastest]
    compared: list[Plan] = []
    least: list[tuple[float, ...]] = []
    for own in sorted(near, key=lambda own: own.seconds):
        if all(plan_effort(own.plan) < one for one in least) and len(compared) < _COMPARED:
            compared.append(own.plan)
            least.append(plan_effort(own.plan))
    if len(compared) == 1:
        return compared[0]
    workload = search.workload
    predictions = [
        predict(workload.with_batch(search.global_batch // plan.dp), search.cluster, plan)
        for plan in compared
    ]
    return simplest_first(predictions)[0].plan
