"""Cost of gradient messages: all-reduce, sharded, compressed, parameter server."""

from dataclasses import replace
from functools import lru_cache

import numpy as np

from paceline.predictor.comm.collective_cost import CollectiveCost
from paceline.predictor.comm.parameter_server import parameter_server_cost
from paceline.predictor.comm.rank_group import Group, Numbers
from paceline.predictor.comm.replica_comm import cost_among
from paceline.predictor.partition.partition import Partition
from paceline.predictor.plan.sync_policy import Exchange, Synchronisation
from paceline.predictor.schedule.step_costs import CollectiveSeconds, GradientExchange


def gradient_exchange(parts: Partition) -> GradientExchange | None:
    """The messages among replicas; None for a single parts."""
    group = parts.layout.replicas
    if group.ranks == 1:
        return None
    exchange = exchange_among(group, parts, parts.synchronisation)
    return exchange if parts.plan.shard_copies == 1 else _in_groups(exchange, parts)


def exchange_among(
    group: Group, parts: Partition, synchronisation: Synchronisation
) -> GradientExchange:
    """Messages of a partition among the ranks of a group, or of an array of groups."""
    all_reduce = _message(parts, "all_reduce", group)
    if synchronisation.exchange is Exchange.PARAMETER_SERVER:
        return _parameter_server(group, parts, synchronisation, all_reduce)
    if parts.plan.compression.gathers:
        # Everyone's entries go to everyone: N times what one worker contributes.
        all_reduce = _message(parts, "all_gather", group, group.ranks)
    return GradientExchange(
        synchronisation,
        all_reduce,
        _message(parts, "reduce_scatter", group),
        _message(parts, "all_gather", group),
    )


def _in_groups(exchange: GradientExchange, parts: Partition) -> GradientExchange:
    """HSDP: weights sharded inside groups, gradients summed among the copies of each shard.

    The sums overlap other messages if groups stay inside nodes and each node has one copy.
    """
    inside, copies = parts.layout.shard_group, parts.layout.shard_copies
    return replace(
        exchange,
        reduce_scatter=_message(parts, "reduce_scatter", inside),
        all_gather=_message(parts, "all_gather", inside),
        copies_sum=_message(parts, "all_reduce", copies),
        shards=parts.plan.shard_degree,
        sums_overlap=bool(inside.nodes == 1 and copies.ranks_per_node == 1),
    )


def _message(
    parts: Partition, operation: str, group: Group, times: Numbers = 1.0
) -> CollectiveSeconds:
    """Seconds of an operation among replicas on ``times`` the bytes of a message.

    The cost of an operation is computed when it is first used, and kept by size because a job is
    scheduled several times.
    """
    delay = parts.framework.message_latency_seconds
    known: dict[float, Numbers] = {}

    @lru_cache(maxsize=1)
    def cost() -> CollectiveCost:
        return cost_among(parts, operation, group)

    def seconds(size: Numbers) -> Numbers:
        if not isinstance(size, float):
            return delay + cost().seconds(times * size)
        if size not in known:
            known[size] = delay + cost().seconds(times * size)
        return known[size]

    return seconds


def _parameter_server(
    group: Group,
    parts: Partition,
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
        parts.cluster,
        parts.framework.library(parts.cluster.device),
        servers=synchronisation.servers,
        colocated=synchronisation.servers_on_workers,
    )
    delay = parts.framework.message_latency_seconds

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
