"""Messages among the workers of a sweep, with scaled networks."""

from dataclasses import replace

import numpy as np

from paceline.hardware import Cluster
from paceline.predictor.comm.collective_cost import CollectiveCost, cost_on_fabric
from paceline.predictor.comm.fabric import Fabric, fabric_of, outer_family, through_host
from paceline.predictor.comm.gradient_exchange import gathered_bytes, pieces_of
from paceline.predictor.comm.rank_group import Group
from paceline.predictor.kernels.layer_arrays import Array
from paceline.predictor.partition.partition import Partition
from paceline.predictor.plan.sync_policy import Synchronisation
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


class SweptMessages:
    """Seconds of messages by configuration, cached by size."""

    def __init__(
        self,
        parts: Partition,
        synchronisation: Synchronisation,
        group: Group,
        fabric: Fabric,
        bandwidth_factor: float,
    ) -> None:
        self._parts, self._bandwidth_factor = parts, bandwidth_factor
        self._synchronisation = synchronisation
        self._group, self._fabric = group, fabric
        self._costs: dict[str, CollectiveCost] = {}
        self._known: dict[tuple[str, float], Array] = {}

    def exchange(self, chosen: slice) -> GradientExchange:
        """The messages of some configurations."""
        return GradientExchange(
            self._synchronisation,
            all_reduce=self._of("all_reduce", chosen),
            reduce_scatter=self._of("reduce_scatter", chosen),
            all_gather=self._of("all_gather", chosen),
            bandwidth_factor=self._bandwidth_factor,
        )

    def _of(self, operation: str, chosen: slice) -> CollectiveSeconds:
        def seconds(size: float) -> Array:
            if (operation, size) not in self._known:
                self._known[operation, size] = self._seconds(operation, size)
            return self._known[operation, size][chosen]

        return seconds

    def _seconds(self, operation: str, size: float) -> Array:
        framework = self._parts.framework
        if operation not in self._costs:
            library = framework.library(self._parts.cluster.device)
            self._costs[operation] = cost_on_fabric(operation, self._group, self._fabric, library)
        piece = gathered_bytes(self._parts) if operation == "all_gather" else np.inf
        pieces = pieces_of(size, piece)
        delay = framework.message_latency_seconds
        return np.asarray(pieces * (delay + self._costs[operation].seconds(size / pieces)))
