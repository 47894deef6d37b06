"""What the axes of a sweep change about a network and about waiting for the slowest."""

from dataclasses import replace
from functools import lru_cache

import numpy as np

from paceline.hardware import Cluster
from paceline.predictor.collectives import Fabric, Group, fabric_of
from paceline.predictor.collectives.fabric import outer_family, through_host
from paceline.predictor.jitter import expected_maximum_lognormal
from paceline.predictor.prepared import PreparedStep
from paceline.predictor.vectorised.axes import Array


def fabric_at(cluster: Cluster, group: Group, link: Array, memory: Array) -> Fabric:
    """The links of a cluster at other bandwidths between nodes and of device memory, bytes/s."""
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


def slowest_factor(case: PreparedStep, workers: Array) -> Array:
    """Computing time of the slowest of so many workers over the mean one."""
    variation = case.variation
    if not variation or case.synchronisation.asynchronous:
        return np.ones(1)
    distinct, place = np.unique(workers, return_inverse=True)
    factors = _slowest_of(variation, tuple(distinct.astype(int)))
    return np.asarray(factors[place].reshape(workers.shape))


@lru_cache(maxsize=64)
def _slowest_of(variation: float, workers: tuple[int, ...]) -> Array:
    return np.asarray(expected_maximum_lognormal(1.0, variation, np.array(workers)))
