"""Exchange through parameter servers: push gradients, pull parameters."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from paceline.errors import InputError
from paceline.hardware import Cluster
from paceline.predictor.comm.fabric import Fabric, fabric_of
from paceline.predictor.comm.library import Library, library
from paceline.predictor.comm.rank_group import Group, Numbers


@dataclass(frozen=True)
class ParameterServerCost:
    """Seconds to push a gradient to the servers and to pull the parameters back."""

    latency_seconds: Numbers
    seconds_per_byte: Numbers

    def seconds(self, size_bytes: Numbers) -> Numbers:
        """Time of one push and pull of ``size_bytes``; 0 for an empty message."""
        sizes = np.asarray(size_bytes, dtype=np.float64)
        result = np.where(
            (sizes <= 0) | (self.seconds_per_byte == 0.0),
            0.0,
            self.latency_seconds + sizes * self.seconds_per_byte,
        )
        return float(result) if result.ndim == 0 else result

    def __call__(self, size_bytes: Any) -> Any:
        """Same as `seconds`; schedules take a cost as a function of size."""
        return self.seconds(size_bytes)


def parameter_server_cost(
    group: Group,
    cluster: Cluster,
    which: str | Library,
    *,
    servers: int | None = None,
    colocated: bool = True,
) -> ParameterServerCost:
    """Push and pull of every gradient among the workers of ``group``.

    Workers of a node first sum their gradients, then each node sends an equal part to each of
    ``servers`` (default: one per node), which sum over nodes and send parameters back.
    ``colocated`` servers run on the workers' nodes, so the part of their own node stays local;
    others are separate machines with the NICs of a node. Push and pull are sequential; the busiest
    NIC, of a node or a server, is the bottleneck.
    """
    profile = library(which)
    nodes = group.nodes
    count = nodes if servers is None else float(servers)
    if np.any(np.asarray(count) < 1):
        raise InputError(
            f"the number of parameter servers must be at least 1 (got {servers})",
            "give a positive integer",
        )
    fabric = fabric_of(cluster, Group(np.maximum(group.ranks, 1.0), group.ranks_per_node))
    inside = _inside_node(group, fabric, profile)
    hop = _hop(profile, fabric)
    if colocated:
        per_node = np.maximum(1.0, count / nodes)
        at_worker = np.where(count < nodes, 1.0, 1.0 - 1.0 / nodes)
        at_server = (nodes - 1.0) * per_node / count
    else:
        cluster.require_network()
        at_worker, at_server = np.ones_like(nodes), nodes / count
    crossing = np.maximum(at_worker, at_server)
    rate = fabric.outer_bandwidth * profile.efficiency.get(fabric.outer, 1.0)
    summing = 0.0 if fabric.reduce_bandwidth is None else nodes / count / fabric.reduce_bandwidth
    across = np.where(crossing > 0, 2.0 * crossing / rate + summing, 0.0)
    alone = np.asarray(group.ranks) <= 1
    return ParameterServerCost(
        latency_seconds=np.where(crossing > 0, 2.0 * hop, 0.0) + inside.latency_seconds,
        seconds_per_byte=np.where(alone & colocated, 0.0, across + inside.seconds_per_byte),
    )


def _inside_node(group: Group, fabric: Fabric, profile: Library) -> ParameterServerCost:
    """Sum over the devices of a node and broadcast: the volume of a ring on the inner link."""
    ranks = group.in_node
    rate = fabric.inner_bandwidth * profile.efficiency.get(fabric.inner, 1.0)
    volume = 2.0 * (ranks - 1.0) / ranks
    hops = 2.0 * (ranks - 1.0) * _inner_hop(profile, fabric)
    return ParameterServerCost(hops, volume / rate)


def _hop(profile: Library, fabric: Fabric) -> float:
    return _slowest_hop(profile, fabric.outer) + fabric.outer_latency_seconds


def _inner_hop(profile: Library, fabric: Fabric) -> float:
    return _slowest_hop(profile, fabric.inner) + fabric.inner_latency_seconds


def _slowest_hop(profile: Library, family: str) -> float:
    """Cost of one point-to-point message on a link family."""
    return max(
        (
            variant.start_seconds + variant.hop_seconds.get(family, 0.0)
            for variant in profile.variants
            if variant.operation == "point_to_point"
        ),
        default=0.0,
    )
