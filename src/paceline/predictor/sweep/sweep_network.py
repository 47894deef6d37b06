"""Messages among the workers of a sweep, with scaled networks."""

from dataclasses import replace

import numpy as np

from paceline.hardware import Cluster
from paceline.predictor.comm.fabric import Fabric, fabric_of, outer_family, through_host
from paceline.predictor.comm.rank_group import Group
from paceline.predictor.kernels.layer_arrays import Array
from paceline.predictor.schedule.step_costs import CollectiveSeconds, GradientExchange


def fabric_at(cluster: Cluster, group: Group, link: Array, memory: Array) -> Fabric:
    """The fabric of a cluster at other network and memory bandwidths, bytes/s."""
    fabric = fabric_of(cluster, group)
    if cluster.inter is not None:
        family = outer_family(cluster.inter)
        now = through_host(cluster.inter.known_bandwidth, family)
        relative = through_host(link, family) / now
        fabric = replace(fabric, outer_bandwidth=fabric.outer_bandwidth * relative)
    if fabric.reduce_bandwidth is not None:
        scale = memory / cluster.device.known_memory_bandwidth
        fabric = replace(fabric, reduce_bandwidth=fabric.reduce_bandwidth * scale)
    return fabric


def some_of(exchange: GradientExchange, chosen: slice) -> GradientExchange:
    """The messages of some configurations; every size is evaluated once for all of them."""

    def part(seconds: CollectiveSeconds) -> CollectiveSeconds:
        return lambda size: np.asarray(seconds(size))[chosen]

    scatter, gather = exchange.reduce_scatter, exchange.all_gather
    return replace(
        exchange,
        all_reduce=part(exchange.all_reduce),
        reduce_scatter=scatter and part(scatter),
        all_gather=gather and part(gather),
    )
