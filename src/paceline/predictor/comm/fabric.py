"""Fabric: bandwidths and latencies that one group of ranks gets from a cluster."""

from dataclasses import dataclass

import numpy as np

from paceline.constants import number
from paceline.hardware import Cluster, Link
from paceline.predictor.comm.rank_group import Group, Numbers


@dataclass(frozen=True)
class Fabric:
    """Bandwidths of a group in bytes/s, one direction, and latencies of the links.

    ``inner_bandwidth`` is that of one device's link inside a node. ``outer_bandwidth`` is the
    group's share of the NICs of a node. ``inner`` and ``outer`` are link families (``nvlink``,
    ``pcie``, ``memory``; ``rdma``, ``tcp``); empty if there is no link. ``inner_efficiency`` and
    ``outer_efficiency`` are the fractions of line rate that collectives were measured to reach.
    Bandwidths may be arrays, for sweeps. ``clock_mhz`` is the clock of the devices, if known.
    """

    inner: str
    outer: str
    inner_bandwidth: Numbers
    outer_bandwidth: Numbers
    inner_latency_seconds: float = 0.0
    outer_latency_seconds: float = 0.0
    inner_efficiency: float | None = None
    outer_efficiency: float | None = None
    sums_in_switch: bool = False
    reduce_bandwidth: Numbers | None = None
    clock_mhz: float | None = None


def fabric_of(cluster: Cluster, group: Group) -> Fabric:
    """The fabric of ``group`` on ``cluster``; an error if a required link is missing."""
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
        outer_efficiency=_measured_efficiency(outer) if outer else None,
        sums_in_switch=inner is not None and inner.sums_in_switch,
        # A sum reads two operands and writes one.
        reduce_bandwidth=memory / 3.0 if memory else None,
        clock_mhz=cluster.device.clock_mhz,
    )


def inner_family(link: Link) -> str:
    """Family of a link inside a node, as libraries distinguish it."""
    return "nvlink" if link.technology in {"nvlink", "xgmi"} else link.technology


def outer_family(link: Link) -> str:
    """Family of a link between nodes.

    An intra-node link may span nodes (GB200 NVL72 connects 18 nodes by NVLink) without NIC or TCP.
    """
    return link.transport or (inner_family(link) if link.scope == "intra" else "tcp")


def through_host(line_rate: Numbers, family: str) -> Numbers:
    """Bandwidth of a NIC: TCP is limited by the host (``overheads.tcp``), RDMA is not."""
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
    """The group's share of the NICs: all that it can reach, divided among concurrent groups."""
    line_rate = through_host(link.known_bandwidth, outer_family(link))
    if link.per == "node":
        whole, nic = line_rate, line_rate / cluster.nics_per_node
    elif link.per == "device":
        nic = line_rate
        whole = nic * cluster.devices_per_node
    else:
        nic = line_rate
        whole = nic * cluster.nics_per_node
    nics_per_rank = max(1.0, whole / nic / cluster.devices_per_node)
    reachable = np.minimum(whole, nic * nics_per_rank * group.in_node)
    share = np.minimum(reachable, whole / group.concurrent_groups)
    return share / cluster.oversubscription
