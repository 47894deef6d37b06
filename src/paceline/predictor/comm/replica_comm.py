"""Messages of each kind of layer within a replica, on its cluster."""

from collections.abc import Sequence

import numpy as np

from paceline.constants import number
from paceline.predictor.comm.collective_cost import (
    CollectiveCost,
    collective_cost,
    cost_on_fabric,
)
from paceline.predictor.comm.expert_messages import sent_share
from paceline.predictor.comm.fabric import Fabric
from paceline.predictor.comm.layer_comm import ContextLinks, ReplicaMessages, context_cost
from paceline.predictor.comm.rank_group import Group, Numbers
from paceline.predictor.partition.partition import Array, Partition
from paceline.predictor.partition.rank_layout import Layout
from paceline.predictor.partition.sharding import ShardMessage


def cost_among(
    parts: Partition, operation: str, group: Group, fabric: Fabric | None = None
) -> CollectiveCost:
    """Cost of a collective operation of a plan among the ranks of a group, by size.

    ``fabric`` replaces that of the cluster.
    """
    library = parts.framework.library(parts.cluster.device)
    if fabric is not None:
        return cost_on_fabric(operation, group, fabric, library)
    return collective_cost(operation, group, parts.cluster, library)


def hop_seconds(
    parts: Partition, layout: Layout, sent_bytes: Numbers, *, sequence_parallel: bool
) -> Numbers:
    """Seconds of ``sent_bytes`` from each device to its neighbour in the next pipeline stage.

    Tensor-parallel devices send a share each; whole tensors are gathered on arrival.
    """
    seconds = cost_among(parts, "point_to_point", layout.neighbours).seconds(sent_bytes)
    if layout.tp == 1 or sequence_parallel:
        return seconds
    gathered = cost_among(parts, "all_gather", layout.tensor).seconds(layout.tp * sent_bytes)
    return seconds + gathered


def replica_messages(parts: Partition) -> ReplicaMessages:
    """Tensor, expert and context-parallel messages of one micro-batch, by kind of layer.

    Those of experts include the vectors of divided embedding tables.
    """
    plan, layout, kinds = parts.plan, parts.layout, parts.kinds
    tensor = _seconds(
        parts,
        [part.tensor_forward for part in kinds] + [part.tensor_backward for part in kinds],
        layout.tensor,
    )
    experts = parts.loads * _seconds(
        parts,
        [part.expert_forward for part in kinds] + [part.expert_backward for part in kinds],
        layout.experts,
    )
    if any(part.rows for part in kinds):
        experts = experts + _seconds(parts, [part.rows for part in kinds] * 2, layout.replicas)
    if any(part.expert_tensor for part in kinds):
        sent = [part.expert_tensor for part in kinds] * 2
        experts = experts + parts.loads * _seconds(parts, sent, layout.expert_tensor)
    context = {}
    if plan.cp > 1:
        links, width = _context_links(parts), parts.precision.activation_bytes
        device, form, samples = parts.cluster.device, parts.cp_impl, parts.share_of_batch
        context = {
            kind: context_cost(part.context, form, links, samples, width, device)
            for kind, part in enumerate(kinds)
            if part.context is not None
        }
    hidden = number("parallelism.tensor.hidden_share") if plan.tp_overlap else 0.0
    hidden_experts = number("parallelism.experts.hidden_share") if plan.ep_overlap else 0.0
    counts = parts.classes.all_counts
    return ReplicaMessages(tensor, experts, hidden, context, hidden_experts, counts)


def _seconds(parts: Partition, sent: Sequence[Sequence[ShardMessage]], group: Group) -> Array:
    """Seconds of messages among the ranks of a group, by pass and kind.

    ``sent`` are the messages of each kind in forward, then those in backward.
    """
    result = np.zeros(len(sent))
    if group.ranks == 1:
        return result.reshape(2, -1)
    operations = sorted({message.operation for own in sent for message in own})
    for operation in operations:
        counted = [
            (kind, _sent_bytes(message, parts, group))
            for kind, own in enumerate(sent)
            for message in own
            if message.operation == operation
        ]
        kinds, sizes = zip(*counted, strict=True)
        seconds = cost_among(parts, operation, group).seconds(np.array(sizes))
        np.add.at(result, list(kinds), seconds)
    return result.reshape(2, -1)


def _sent_bytes(message: ShardMessage, parts: Partition, group: Group) -> float:
    """Bytes that one device sends of a message."""
    size = float(message.size.at(parts.share_of_batch))
    if message.operation != "all_to_all":
        return size
    return size * sent_share(message.copies, parts.plan.ep_impl, group)


def _context_links(parts: Partition) -> ContextLinks:
    group = parts.layout.context
    inside = [Group(2, 2, group.concurrent_groups)] if group.in_node > 1 else []
    between = [Group(2, 1, group.concurrent_groups)] if group.nodes > 1 else []
    return ContextLinks(
        parts.plan.cp,
        tuple(cost_among(parts, "point_to_point", pair) for pair in inside + between),
        lambda operation: cost_among(parts, operation, group),
    )
