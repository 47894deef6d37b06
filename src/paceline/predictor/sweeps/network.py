"""Messages among the workers of a sweep, on networks as its axes change them."""

from dataclasses import replace

import numpy as np

from paceline.hardware import Cluster
from paceline.plan.synchronisation import Synchronisation
from paceline.predictor.collectives import CollectiveCost, Fabric, Group, cost_on_fabric, fabric_of
from paceline.predictor.collectives.fabric import outer_family, through_host
from paceline.predictor.layer_arrays import Array
from paceline.predictor.prepared import PreparedStep
from paceline.predictor.step_costs import CollectiveSeconds, GradientExchange


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


class SweptMessages:
    """Seconds of messages by configuration; those of one size are computed once."""

    def __init__(
        self, case: PreparedStep, synchronisation: Synchronisation, group: Group, fabric: Fabric
    ) -> None:
        self._case = case
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
            bandwidth_factor=self._case.applied.bandwidth_factor,
        )

    def _of(self, operation: str, chosen: slice) -> CollectiveSeconds:
        def seconds(size: float) -> Array:
            if (operation, size) not in self._known:
                self._known[operation, size] = self._seconds(operation, size)
            return self._known[operation, size][chosen]

        return seconds

    def _seconds(self, operation: str, size: float) -> Array:
        framework = self._case.framework
        if operation not in self._costs:
            library = framework.library(self._case.cluster.device)
            self._costs[operation] = cost_on_fabric(operation, self._group, self._fabric, library)
        return np.asarray(framework.message_latency_seconds + self._costs[operation].seconds(size))
