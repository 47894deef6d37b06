"""Fabric: the links of a cluster as one group of ranks sees them."""

from dataclasses import dataclass

import numpy as np

from paceline.constants import number
from paceline.hardware import Cluster, Link
from paceline.predictor.collectives.group import Group, Numbers


@dataclass(frozen=True)
class Fabric:
    """Bandwidths that a group gets, in bytes/s one way, and the wires' own latencies.

    ``inner_bandwidth`` is that of one device's link inside a node. ``outer_bandwidth`` is the
    group's share of a node's network cards. ``inner`` and ``outer`` name the family of the
    link as libraries see it (``nvlink``, ``pcie``, ``memory``; ``rdma``, ``tcp``); empty where
    there is none. ``inner_efficiency`` is the fraction of line rate that a library was measured
    to reach inside a node. Bandwidths may be arrays, for sweeps. ``clock_mhz`` is the clock of the
    devices that run a library's part, if it is known.
    """

    inner: str
    outer: str
    inner_bandwidth: Numbers
    outer_bandwidth: Numbers
    inner_latency_seconds: float = 0.0
    outer_latency_seconds: float = 0.0
    inner_efficiency: float | None = None
    sums_in_switch: bool = False
    reduce_bandwidth: Numbers | None = None
    clock_mhz: float | None = None


def fabric_of(cluster: Cluster, group: Group) -> Fabric:
    """What ``group`` gets of ``cluster``; an error where it needs a link that is not there."""
    inner = cluster.require_intra() if np.any(group.in_node > 1) else cluster.intra
    outer = cluster.require_network() if np.any(group.nodes > 1) else cluster.inter
    memory = cluster.device.memory_bandwidth
    return Fabric(
        inner=inner_family(inner) if inner else "",
        outer=outer_family(outer) if outer else "",
        inner_bandwidth=_inner_bandwidth(inner, cluster) if inner else np.inf,
        outer_bandwidth=_outer_bandwidth(outer, cluster, group) if outer else np.inf,
        inner_latency_seconds=(inner.latency_seconds or 0.0) if inner else 0.0,
        outer_latency_seconds=(outer.latency_seconds or 0.0) if outer else 0.0,
        inner_efficiency=_measured_efficiency(inner) if inner else None,
        sums_in_switch=inner is not None and inner.sums_in_switch,
        # A sum reads two operands and writes one.
        reduce_bandwidth=memory / 3.0 if memory else None,
        clock_mhz=cluster.device.clock_mhz,
    )


def inner_family(link: Link) -> str:
    """How a library treats a link inside a node."""
    return "nvlink" if link.technology in {"nvlink", "xgmi"} else link.technology


def outer_family(link: Link) -> str:
    """How a library treats a link between nodes."""
    return link.transport or "tcp"


def through_host(line_rate: Numbers, family: str) -> Numbers:
    """What a card moves of its line rate: TCP goes through the host, which is slower than some."""
    if family != "tcp":
        return line_rate
    return np.minimum(line_rate, number("overheads.tcp.card_bytes_per_second"))


def _measured_efficiency(link: Link) -> float | None:
    if link.collective_bandwidth is None:
        return None
    return link.collective_bandwidth / link.known_bandwidth


def _inner_bandwidth(link: Link, cluster: Cluster) -> float:
    if link.per == "node":
        return link.known_bandwidth / cluster.devices_per_node
    return link.known_bandwidth


def _outer_bandwidth(link: Link, cluster: Cluster, group: Group) -> Numbers:
    """A group's share of the cards: all it can reach, or its part when groups compete."""
    line_rate = through_host(link.known_bandwidth, outer_family(link))
    if link.per == "node":
        whole, card = line_rate, line_rate / cluster.nics_per_node
    elif link.per == "device":
        card = line_rate
        whole = card * cluster.devices_per_node
    else:
        card = line_rate
        whole = card * cluster.nics_per_node
    cards_per_rank = max(1.0, whole / card / cluster.devices_per_node)
    reachable = np.minimum(whole, card * cards_per_rank * group.in_node)
    share = np.minimum(reachable, whole / group.concurrent_groups)
    return share / cluster.oversubscription
