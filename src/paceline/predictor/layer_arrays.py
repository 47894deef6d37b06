"""Times of layers for arrays of batches and of a device's rates; equal layers computed once."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from paceline.plan.sharding import ShardedLayer
from paceline.predictor.compute import LayerWork, layer_work
from paceline.predictor.efficiency import load_efficiency
from paceline.predictor.replica import Replica
from paceline.workload.cost import GraphProfile

Array = NDArray[np.float64]


class LayerArrays:
    """Kinds of layer of a replica, each one device's part, asked for times of many batches."""

    def __init__(self, replica: Replica, kinds: Sequence[ShardedLayer]) -> None:
        self._replica = replica
        self._profile = GraphProfile(tuple(part.profile for part in kinds))
        self._efficiency = replica.efficiency or load_efficiency()

    def seconds(self, batches: Array) -> Array:
        """Times at the device's own rates: pass, kind of layer, batch."""
        device = self._replica.cluster.device
        return self._work(batches).seconds(
            self._efficiency.attainable_flops(device, self._replica.precision.compute),
            device.known_memory_bandwidth,
            self._efficiency.launch(device),
            self._replica.framework.dispatch_seconds,
        )

    def summed(self, batches: Array, counts: Array) -> "LayerSums":
        """Sums over groups of layers, at rates that are still to be named.

        ``counts`` (group, pass, kind) says how many of each a group has.
        """
        parts = self._work(batches).parts
        columns = [part.reshape(-1, batches.size) for part in parts.values()]
        table = np.concatenate(columns, axis=1)
        distinct, place = np.unique(table, axis=0, return_inverse=True)
        members = np.zeros((len(counts), len(distinct)))
        np.add.at(members.T, place.ravel(), counts.reshape(len(counts), -1).T)
        kept = zip(parts, np.split(distinct, len(parts), axis=1), strict=True)
        device, arithmetic = self._replica.cluster.device, self._replica.precision.compute
        return LayerSums(
            LayerWork((), gradient_bytes=np.zeros(0), **dict(kept)),
            members,
            self._efficiency.attainable_flops(device, arithmetic) / device.peak(arithmetic),
            self._efficiency.launch(device),
            self._replica.framework.dispatch_seconds,
        )

    def _work(self, batches: Array) -> LayerWork:
        framework = self._replica.framework
        return layer_work(
            self._profile,
            batches,
            self._replica.cluster.device,
            self._replica.precision,
            self._efficiency,
            framework.convolution,
            framework.pointwise_traffic,
        )


@dataclass(frozen=True)
class LayerSums:
    """Distinct passes of layers for given batches, asked for sums at any rates.

    ``members`` says how many of each are in each group; ``attainable`` is the fraction of peak
    that the best product reaches.
    """

    work: LayerWork
    members: Array
    attainable: float
    launch_seconds: float
    dispatch_seconds: float

    def seconds(self, batch: int | NDArray[np.intp], flops: Array, memory: Array) -> Array:
        """Sum of each group by configuration.

        ``batch`` is a position in the batches, or one for each configuration; ``flops`` (peak)
        and ``memory`` are rates by configuration.
        """
        chosen = LayerWork(
            (),
            gradient_bytes=np.zeros(0),
            **{
                name: np.ascontiguousarray(part[:, batch]).reshape(len(part), -1)
                for name, part in self.work.parts.items()
            },
        )
        times = chosen.seconds(
            self.attainable * flops, memory, self.launch_seconds, self.dispatch_seconds
        )
        return np.asarray(self.members @ times)
