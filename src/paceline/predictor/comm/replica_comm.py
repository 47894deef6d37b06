"""Messages of each kind of layer within a replica, on its cluster."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from paceline.constants import number
from paceline.predictor.comm.layer_comm import (
    ContextCost,
    ContextLinks,
    LayerExchange,
    context_cost,
)
from paceline.predictor.comm.rank_group import Group
from paceline.predictor.partition.sharding import ShardedLayer, ShardMessage

if TYPE_CHECKING:
    from paceline.predictor.partition.replica import Replica


def layer_exchanges(replica: "Replica") -> list[LayerExchange]:
    """Tensor, expert and context-parallel messages of one micro-batch, by kind of layer."""
    plan, tensor, experts = replica.plan, replica.layout.tensor, replica.layout.experts
    hidden = number("parallelism.tensor.hidden_share") if plan.tp_overlap else 0.0
    links = _context_links(replica) if plan.cp > 1 else None
    return [
        LayerExchange(
            (
                _seconds(replica, part.tensor_forward, tensor),
                _seconds(replica, part.tensor_backward, tensor),
            ),
            (
                load * _seconds(replica, part.expert_forward, experts),
                load * _seconds(replica, part.expert_backward, experts),
            ),
            _context_cost(replica, part, links),
            hidden,
        )
        for part, load in zip(replica.kinds, replica.loads, strict=True)
    ]


def _seconds(replica: "Replica", messages: Sequence[ShardMessage], group: Group) -> float:
    if group.ranks == 1:
        return 0.0
    samples = replica.share_of_batch
    return sum(
        float(replica.cost(message.operation, group).seconds(message.size.at(samples)))
        for message in messages
    )


def _context_cost(
    replica: "Replica", part: ShardedLayer, links: ContextLinks | None
) -> ContextCost | None:
    if links is None or part.context is None:
        return None
    return context_cost(
        part.context,
        replica.context_form,
        links,
        replica.share_of_batch,
        replica.precision.activation_bytes,
        replica.cluster.device,
    )


def _context_links(replica: "Replica") -> ContextLinks:
    group = replica.layout.context
    inside = [Group(2, 2, group.concurrent_groups)] if group.in_node > 1 else []
    between = [Group(2, 1, group.concurrent_groups)] if group.nodes > 1 else []
    return ContextLinks(
        replica.plan.cp,
        tuple(replica.cost("point_to_point", pair) for pair in inside + between),
        lambda operation: replica.cost(operation, group),
    )
