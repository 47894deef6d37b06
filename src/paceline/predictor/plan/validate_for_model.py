"""Validation of a plan for a network."""

from paceline.errors import InputError
from paceline.predictor.memory.activations import numbered_parts
from paceline.predictor.memory.recomputed_modules import has_module
from paceline.predictor.partition.tensor_parallel import check_divisible
from paceline.predictor.plan.plan import Plan
from paceline.predictor.plan.plan_choices import ContextForm, Recompute
from paceline.workload.graph import Graph
from paceline.workload.ops import Attention, MixtureOfExperts


def check_possible(plan: Plan, graph: Graph, sequence: int | None) -> None:
    """Reject degrees that do not divide the network."""
    check_divisible(graph, plan.tp, plan.expert_tp)
    check_experts(plan, graph)
    _check_context(plan, graph, sequence)


def check_experts(plan: Plan, graph: Graph) -> None:
    """Reject an expert-parallel degree that does not divide the experts."""
    if plan.ep == 1 and plan.etp is None:
        return
    experts = [node.op.experts for node in graph.nodes if isinstance(node.op, MixtureOfExperts)]
    if not experts:
        option, degree = ("ep", plan.ep) if plan.ep > 1 else ("etp", plan.etp)
        raise InputError(
            f"{option} {degree} needs experts, but {graph.name} has none", f"omit --{option}"
        )
    if any(count % plan.ep for count in experts):
        raise InputError(
            f"ep {plan.ep} does not divide the {min(experts)} experts of {graph.name}",
            f"use an expert-parallel degree that divides {min(experts)}",
        )


def _check_context(plan: Plan, graph: Graph, sequence: int | None) -> None:
    if plan.cp == 1:
        return
    tokens = sequence or graph.sequence
    if not graph.uses_sequence or tokens is None:
        raise InputError(f"cp {plan.cp} needs a sequence, but {graph.name} has none", "omit --cp")
    if tokens % plan.cp:
        raise InputError(
            f"cp {plan.cp} does not divide {tokens} tokens",
            f"use a context-parallel degree that divides {tokens}",
        )


def check_cp_impl(plan: Plan, form: ContextForm, graph: Graph) -> None:
    """Reject Ulysses where tp x cp does not divide the heads."""
    if plan.cp == 1 or form is not ContextForm.ULYSSES:
        return
    degree = plan.tp * plan.cp
    heads = [node.op.heads for node in graph.nodes if isinstance(node.op, Attention)]
    if any(count % degree for count in heads):
        raise InputError(
            f"ulysses needs tp x cp = {degree} to divide the {min(heads)} heads of {graph.name}",
            "use a smaller --cp, or --cp-impl ring",
        )


def check_sharding(plan: Plan) -> None:
    """Reject shard groups without sharding."""
    if plan.shard_group is not None and plan.zero == 0:
        raise InputError(
            f"--shard-group {plan.shard_group} needs --zero 1, 2 or 3",
            "add --zero 3, or omit --shard-group",
        )


def check_recomputation(plan: Plan, graph: Graph) -> None:
    """Reject recomputation of layers that the network does not have."""
    has_attention = any(isinstance(node.op, Attention) for node in graph.nodes)
    if plan.recompute is Recompute.SELECTIVE and not has_attention:
        raise InputError(
            f"selective recomputation needs attention, but {graph.name} has none",
            "use --recompute full or none",
        )
    missing = [each for each in plan.recompute_modules if not has_module(graph, each)]
    if missing:
        raise InputError(
            f"--recompute {missing[0]} selects no layer of {graph.name}",
            f"omit {missing[0]}, or use --recompute full",
        )
    count = len(numbered_parts(graph))
    if plan.recompute_every > max(1, count):
        raise InputError(
            f"every:{plan.recompute_every} selects none of the {count} blocks of {graph.name}",
            f"use every:{count} or less, or omit --recompute",
        )
    if plan.recompute in (Recompute.FULL, Recompute.OPERATION) and count == 0:
        raise InputError(
            f"{plan.recompute} recomputation needs blocks, but {graph.name} has none",
            "omit --recompute",
        )
