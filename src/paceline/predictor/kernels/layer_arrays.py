"""Layer times for arrays of batches and device rates; equal layers are evaluated once."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from paceline.predictor.kernels.efficiency import Efficiency, load_efficiency
from paceline.predictor.kernels.roofline import LayerWork, layer_work
from paceline.predictor.partition.partition import Partition
from paceline.predictor.partition.sharding import ShardedLayer
from paceline.workload.cost import GraphProfile

Array = NDArray[np.float64]


class LayerArrays:
    """Times of one device's part of each kind of layer, for many batches."""

    def __init__(
        self,
        parts: Partition,
        kinds: Sequence[ShardedLayer],
        efficiency: Efficiency | None = None,
    ) -> None:
        self._parts = parts
        self._profile = GraphProfile(tuple(part.profile for part in kinds))
        kernel = parts.framework.attention_kernel
        self._efficiency = (efficiency or load_efficiency()).of_program(
            parts.cluster.device, kernel
        )

    def seconds(self, batches: Array) -> Array:
        """Times at the rates of the device; axes pass, kind of layer, batch."""
        device = self._parts.cluster.device
        return self._work(batches).seconds(
            self._efficiency.attainable_flops(device, self._parts.precision.compute),
            device.known_memory_bandwidth,
            self._efficiency.launch(device),
            self._parts.framework.dispatch_seconds,
        )

    def summed(self, batches: Array, counts: Array) -> "LayerSums":
        """Sums over groups of layers, evaluated later for given rates.

        ``counts`` (group, pass, kind) is the number of layers of each kind in a group.
        """
        parts = self._work(batches).parts
        columns = [part.reshape(-1, batches.size) for part in parts.values()]
        table = np.concatenate(columns, axis=1)
        distinct, index = np.unique(table, axis=0, return_inverse=True)
        members = np.zeros((len(counts), len(distinct)))
        np.add.at(members.T, index.ravel(), counts.reshape(len(counts), -1).T)
        kept = zip(parts, np.split(distinct, len(parts), axis=1), strict=True)
        device, arithmetic = self._parts.cluster.device, self._parts.precision.compute
        return LayerSums(
            LayerWork((), gradient_bytes=np.zeros(0), **dict(kept)),
            members,
            self._efficiency.attainable_flops(device, arithmetic) / device.peak(arithmetic),
            self._efficiency.launch(device),
            self._parts.framework.dispatch_seconds,
        )

    def _work(self, batches: Array) -> LayerWork:
        framework = self._parts.framework
        return layer_work(
            self._profile,
            batches,
            self._parts.cluster.device,
            self._parts.precision,
            self._efficiency,
            framework.convolution,
            framework.pointwise_traffic,
        )


@dataclass(frozen=True)
class LayerSums:
    """Distinct passes of layers for given batches, summed at any rates.

    ``members`` counts each pass in each group; ``attainable`` is the fraction of peak that the
    best GEMM reaches.
    """

    work: LayerWork
    members: Array
    attainable: float
    launch_seconds: float
    dispatch_seconds: float

    def seconds(self, batch: int | NDArray[np.intp], flops: Array, memory: Array) -> Array:
        """Sum of each group by configuration.

        ``batch`` is an index into the batches, or one per configuration; ``flops`` (peak) and
        ``memory`` are rates by configuration.
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
