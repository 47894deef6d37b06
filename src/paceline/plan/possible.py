"""Plans that a network cannot follow are refused, with what would be possible."""

from paceline.errors import InputError
from paceline.plan.activations import numbered_parts
from paceline.plan.choices import ContextForm, Recompute
from paceline.plan.plan import Plan
from paceline.plan.tensor_parallel import check_divisible
from paceline.workload.graph import Graph
from paceline.workload.ops import Attention, MixtureOfExperts


def check_possible(plan: Plan, graph: Graph, sequence: int | None) -> None:
    """Refuse degrees that the network has nothing to divide by."""
    check_divisible(graph, plan.tp)
    check_experts(plan, graph)
    _check_context(plan, graph, sequence)


def check_experts(plan: Plan, graph: Graph) -> None:
    """Refuse to share out experts that the network does not have."""
    if plan.ep == 1:
        return
    experts = [node.op.experts for node in graph.nodes if isinstance(node.op, MixtureOfExperts)]
    if not experts:
        raise InputError(
            f"ep {plan.ep} shares out experts, and {graph.name} has none", "leave --ep out"
        )
    if any(count % plan.ep for count in experts):
        raise InputError(
            f"the {min(experts)} experts of {graph.name} do not divide by ep {plan.ep}",
            f"take an expert-parallel degree that divides {min(experts)}",
        )


def _check_context(plan: Plan, graph: Graph, sequence: int | None) -> None:
    if plan.cp == 1:
        return
    tokens = sequence or graph.sequence
    if not graph.uses_sequence or tokens is None:
        raise InputError(
            f"cp {plan.cp} divides tokens, and {graph.name} has none", "leave --cp out"
        )
    if tokens % plan.cp:
        raise InputError(
            f"{tokens} tokens do not divide by cp {plan.cp}",
            f"take a context-parallel degree that divides {tokens}",
        )


def check_context_form(plan: Plan, form: ContextForm, graph: Graph) -> None:
    """Refuse to exchange heads for tokens where heads do not divide."""
    if plan.cp == 1 or form is not ContextForm.ULYSSES:
        return
    degree = plan.tp * plan.cp
    heads = [node.op.heads for node in graph.nodes if isinstance(node.op, Attention)]
    if any(count % degree for count in heads):
        raise InputError(
            f"the {min(heads)} heads of {graph.name} do not divide by tp x cp = {degree}, which "
            "exchanging heads for tokens (ulysses) needs",
            "take a smaller --cp, or --cp-form ring",
        )


def check_sharding(plan: Plan) -> None:
    """Refuse groups of shards where nothing is sharded."""
    if plan.shard_group is not None and plan.zero == 0:
        raise InputError(
            f"shard_group {plan.shard_group} is of sharded replicas, and nothing is sharded",
            "add --zero 3, or leave --shard-group out",
        )


def check_recomputation(plan: Plan, graph: Graph) -> None:
    """Refuse to compute again what nothing is saved by."""
    if plan.recompute is Recompute.SELECTIVE:
        if not any(isinstance(node.op, Attention) for node in graph.nodes):
            raise InputError(
                f"selective recomputation computes attention again, and {graph.name} has none",
                "take --recompute full or none",
            )
        if plan.fused_attention:
            raise InputError(
                "selective recomputation saves the scores of attention, which fused kernels "
                "never write",
                "leave --recompute out, take full, or say --unfused-attention",
            )
    count = len(numbered_parts(graph))
    if plan.recompute_every > max(1, count):
        raise InputError(
            f"one block in {plan.recompute_every} of the {count} of {graph.name} is none",
            f"take every:{count} or less, or leave --recompute out",
        )
    if plan.recompute in (Recompute.FULL, Recompute.OPERATION) and count == 0:
        raise InputError(
            f"{plan.recompute} recomputation keeps the input of each block, and {graph.name} has "
            "no blocks",
            "leave --recompute out",
        )
