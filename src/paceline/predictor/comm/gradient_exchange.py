"""Cost of gradient messages: all-reduce, sharded, compressed, parameter server."""

from dataclasses import replace

import numpy as np

from paceline.predictor.comm.compression import NO_COMPRESSION
from paceline.predictor.comm.parameter_server import parameter_server_cost
from paceline.predictor.comm.rank_group import Group, Numbers
from paceline.predictor.partition.replica import Replica
from paceline.predictor.plan.sync_policy import Exchange, Synchronisation
from paceline.predictor.schedule.step_costs import CollectiveSeconds, GradientExchange, LayerTime


def gradient_exchange(
    replica: Replica, synchronisation: Synchronisation
) -> GradientExchange | None:
    """The messages among replicas; None for a single replica."""
    group = replica.layout.replicas
    if group.ranks == 1:
        return None
    exchange = exchange_among(group, replica, synchronisation)
    return exchange if replica.plan.shard_copies == 1 else _in_groups(exchange, replica)


def exchange_among(
    group: Group, replica: Replica, synchronisation: Synchronisation
) -> GradientExchange:
    """Messages of ``replica`` among the ranks of a group, or of an array of groups."""
    all_reduce = _message(replica, "all_reduce", group)
    if synchronisation.exchange is Exchange.PARAMETER_SERVER:
        return _parameter_server(group, replica, synchronisation, all_reduce)
    if replica.plan.compression.gathers:
        # Everyone's entries go to everyone: N times what one worker contributes.
        all_reduce = _message(replica, "all_gather", group, group.ranks)
    return GradientExchange(
        synchronisation,
        all_reduce,
        _message(replica, "reduce_scatter", group),
        _message(replica, "all_gather", group),
    )


def _in_groups(exchange: GradientExchange, replica: Replica) -> GradientExchange:
    """HSDP: weights sharded inside groups, gradients summed among the copies of each shard.

    The sums overlap other messages if groups stay inside nodes and each node has one copy.
    """
    inside, copies = replica.layout.shard_group, replica.layout.shard_copies
    return replace(
        exchange,
        reduce_scatter=_message(replica, "reduce_scatter", inside),
        all_gather=_message(replica, "all_gather", inside),
        copies_sum=_message(replica, "all_reduce", copies),
        shards=replica.plan.shard_degree,
        sums_overlap=bool(inside.nodes == 1 and copies.ranks_per_node == 1),
    )


def compressed(layers: list[LayerTime], replica: Replica) -> list[LayerTime]:
    """Layers with compressed gradients."""
    compression = replica.plan.compression
    if compression == NO_COMPRESSION:
        return layers
    width = replica.precision.gradient_bytes
    bandwidth = replica.cluster.device.known_memory_bandwidth
    return [
        replace(
            layer,
            gradient_bytes=compression.sent_bytes(layer.gradient_bytes, width),
            backward_seconds=layer.backward_seconds
            + compression.memory_passes * layer.gradient_bytes / bandwidth,
        )
        for layer in layers
    ]


def _message(
    replica: Replica, operation: str, group: Group, times: Numbers = 1.0
) -> CollectiveSeconds:
    """Seconds of an operation among replicas on ``times`` the bytes of a message.

    Results are cached by size because a job is scheduled many times.
    """
    cost = replica.cost(operation, group)
    delay = replica.framework.message_latency_seconds
    known: dict[float, Numbers] = {}

    def seconds(size: Numbers) -> Numbers:
        if not isinstance(size, float):
            return delay + cost.seconds(times * size)
        if size not in known:
            known[size] = delay + cost.seconds(times * size)
        return known[size]

    return seconds


def _parameter_server(
    group: Group,
    replica: Replica,
    synchronisation: Synchronisation,
    all_reduce: CollectiveSeconds,
) -> GradientExchange:
    """Push and pull each take half of the cost: they carry the same bytes.

    Dedicated servers send and receive at once. Servers on worker nodes share the NICs in both
    directions, so pushes and pulls alternate. Workers of one node need no server.
    """
    alone = np.asarray(group.nodes) == 1
    if alone.all():
        return GradientExchange(synchronisation, all_reduce)
    cost = parameter_server_cost(
        group,
        replica.cluster,
        replica.framework.library(replica.cluster.device),
        servers=synchronisation.servers,
        colocated=synchronisation.servers_on_workers,
    )
    delay = replica.framework.message_latency_seconds

    def push(size: Numbers) -> Numbers:
        served = delay + 0.5 * cost.seconds(size)
        return np.where(alone, all_reduce(size), served) if alone.any() else served

    def pull(size: Numbers) -> Numbers:
        served = 0.5 * cost.seconds(size)
        return np.where(alone, 0.0, served) if alone.any() else served

    return GradientExchange(
        synchronisation,
        push,
        pull=pull,
        one_way_at_a_time=synchronisation.servers_on_workers,
    )
