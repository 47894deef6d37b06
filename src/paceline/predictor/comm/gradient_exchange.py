"""Cost of gradient messages: all-reduce, sharded, compressed, parameter server."""

import math
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from paceline.predictor.comm.collective_cost import CollectiveCost
from paceline.predictor.comm.fabric import Fabric
from paceline.predictor.comm.parameter_server import ParameterServerCost, parameter_server_cost
from paceline.predictor.comm.rank_group import Group, Numbers
from paceline.predictor.comm.replica_comm import cost_among
from paceline.predictor.partition.partition import Partition
from paceline.predictor.plan.plan_choices import Recompute
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
    group: Group,
    parts: Partition,
    synchronisation: Synchronisation,
    fabric: Fabric | None = None,
) -> GradientExchange:
    """Messages of a partition among the ranks of a group, or of an array of groups.

    ``fabric`` replaces that of the cluster.
    """
    message = partial(MessageSeconds, parts, group=group, fabric=fabric)
    all_reduce = message("all_reduce")
    if synchronisation.exchange is Exchange.PARAMETER_SERVER:
        return _parameter_server(group, parts, synchronisation, all_reduce)
    if parts.plan.compression.gathers:
        # Everyone's entries go to everyone: N times what one worker contributes.
        all_reduce = message("all_gather", times=group.ranks)
    return GradientExchange(
        synchronisation,
        all_reduce,
        message("reduce_scatter"),
        message("all_gather", piece_bytes=gathered_bytes(parts)),
        most_gathered_bytes=_most_gathered_bytes(parts),
        backward_gathers=_backward_gathers(parts),
    )


def gathered_bytes(parts: Partition) -> float:
    """Bytes of one message that gathers weights: all of them, or a mean tensor."""
    if not parts.framework.gathers_tensors:
        return math.inf
    tensors = parts.total([len(part.profile.tensors) for part in parts.kinds])
    return parts.total(parts.weight_bytes) / max(1.0, tensors)


def _most_gathered_bytes(parts: Partition) -> float:
    """Limit of the program on gathered weights; infinite without one."""
    limit = parts.framework.most_gathered_parameters
    return limit * parts.precision.activation_bytes if limit else math.inf


def _backward_gathers(parts: Partition) -> float:
    """Gathers of a mean unit in backward.

    Programs that gather tensors release them after each module, so recomputation gathers them once
    more (Rajbhandari et al. 2021, ZeRO-Infinity, section 4.1).
    """
    again = parts.framework.gathers_tensors and parts.plan.recompute is Recompute.FULL
    return 1.0 + (1.0 / parts.plan.recompute_every if again else 0.0)


def _in_groups(exchange: GradientExchange, parts: Partition) -> GradientExchange:
    """HSDP: weights sharded inside groups, gradients summed among the copies of each shard.

    The sums overlap other messages if groups stay inside nodes and each node has one copy.
    """
    inside, copies = parts.layout.shard_group, parts.layout.shard_copies
    return replace(
        exchange,
        reduce_scatter=MessageSeconds(parts, "reduce_scatter", inside),
        all_gather=MessageSeconds(parts, "all_gather", inside, piece_bytes=gathered_bytes(parts)),
        copies_sum=MessageSeconds(parts, "all_reduce", copies),
        shards=parts.plan.shard_degree,
        sums_overlap=bool(inside.nodes == 1 and copies.ranks_per_node == 1),
    )


@dataclass(frozen=True)
class MessageSeconds:
    """Seconds of an operation among replicas on ``times`` the bytes of a message.

    A message larger than ``piece_bytes`` is sent in pieces of about that size, one after another.
    The cost of an operation is computed when it is first used, and kept by size because a job is
    scheduled several times.
    """

    parts: Partition
    operation: str
    group: Group
    times: Numbers = 1.0
    piece_bytes: float = math.inf
    fabric: Fabric | None = None
    known: dict[float, Numbers] = field(default_factory=dict, compare=False, repr=False)

    @cached_property
    def _cost(self) -> CollectiveCost:
        return cost_among(self.parts, self.operation, self.group, self.fabric)

    def __call__(self, size: Numbers) -> Numbers:
        if not isinstance(size, float):
            return self._seconds(size)
        if size not in self.known:
            self.known[size] = self._seconds(size)
        return self.known[size]

    def _seconds(self, size: Numbers) -> Numbers:
        delay = self.parts.framework.message_latency_seconds
        if math.isinf(self.piece_bytes):
            return delay + self._cost.seconds(self.times * size)
        pieces = np.maximum(1.0, np.round(size / self.piece_bytes))
        seconds: Numbers = pieces * (delay + self._cost.seconds(self.times * size / pieces))
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
    return GradientExchange(
        synchronisation,
        ServerSeconds(cost, alone, delay, all_reduce),
        pull=ServerSeconds(cost, alone),
        one_way_at_a_time=synchronisation.servers_on_workers,
    )


@dataclass(frozen=True)
class ServerSeconds:
    """Seconds of a push or pull, and of ``inside`` for the groups ``alone`` on one node."""

    cost: ParameterServerCost
    alone: Any
    delay: float = 0.0
    inside: CollectiveSeconds | None = None

    def __call__(self, size: Numbers) -> Numbers:
        served = self.delay + 0.5 * self.cost.seconds(size)
        if not self.alone.any():
            return served
        inside = 0.0 if self.inside is None else self.inside(size)
        return np.where(self.alone, inside, served)
