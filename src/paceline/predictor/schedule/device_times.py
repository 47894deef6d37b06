"""Seconds of each kind of layer on one device with its exchanges and recomputation."""

from dataclasses import dataclass, replace

import numpy as np

from paceline.predictor.comm.compression import NO_COMPRESSION
from paceline.predictor.comm.layer_comm import ReplicaMessages
from paceline.predictor.kernels.layer_times import LayerTimes
from paceline.predictor.memory.offload import exposed_transfers, moved_bytes, weight_shards
from paceline.predictor.partition.partition import Array, Partition
from paceline.predictor.plan.plan_choices import Offload
from paceline.predictor.schedule.step_costs import LayerTime
from paceline.workload.blocks import part_of


@dataclass(frozen=True, eq=False)
class DeviceTimes:
    """Seconds and gradient bytes by kind of layer, for one micro-batch.

    ``recompute`` is forward work repeated before backward, ``forward_exchange`` and
    ``backward_exchange`` are exposed messages within the replica.
    """

    forward: Array
    backward: Array
    recompute: Array
    forward_exchange: Array
    backward_exchange: Array
    gradient_bytes: Array

    @property
    def whole_forward(self) -> Array:
        """Forward including exchanges."""
        return self.forward + self.forward_exchange

    @property
    def whole_backward(self) -> Array:
        """Backward including recomputation and exchanges."""
        return self.recompute + self.backward + self.backward_exchange


def device_times(
    parts: Partition,
    layers: LayerTimes,
    within: ReplicaMessages,
    scale: float = 1.0,
    modelled: float = 1.0,
    bandwidth: float = 1.0,
) -> DeviceTimes:
    """Computing time times ``scale``, messages at ``bandwidth`` times their modelled speed.

    ``modelled`` is a further factor on layers that were not measured.
    """
    factor = parts.loads * np.where(layers.measured, scale, scale * modelled)
    forward = within.computing(factor * layers.forward, 0)
    backward = within.computing(factor * layers.backward, 1)
    sent = within.exposed(forward, bandwidth, 0)
    returned = within.exposed(backward, bandwidth, 1)
    recompute = np.where(parts.kept.again, forward + sent, 0.0)
    times = DeviceTimes(forward, backward, recompute, sent, returned, parts.gradient_bytes)
    of_layer = parts.classes.of_layer
    numbered = [bool(part_of(node.name)) for node in parts.workload.graph.nodes]
    transfers = {
        Offload.ACTIVATIONS: (moved_bytes, of_layer[numbered]),
        Offload.WEIGHTS: (weight_shards, of_layer),
    }
    for what, (bytes_of, layers_of) in transfers.items():
        if what in parts.plan.offload:
            counts = np.bincount(layers_of, minlength=len(parts.kinds)).astype(float)
            passes = (times.whole_forward, times.whole_backward)
            late = exposed_transfers(bytes_of(parts), counts, parts.cluster, passes)
            times = replace(
                times,
                forward_exchange=times.forward_exchange + late[0],
                backward_exchange=times.backward_exchange + late[1],
            )
    return times


def with_compression(times: DeviceTimes, parts: Partition) -> DeviceTimes:
    """The same times with compressed gradients, as the plan says."""
    compression = parts.plan.compression
    if compression == NO_COMPRESSION:
        return times
    width = parts.precision.gradient_bytes
    bandwidth = parts.cluster.device.known_memory_bandwidth
    sizes = times.gradient_bytes
    return replace(
        times,
        backward=times.backward + compression.memory_passes * sizes / bandwidth,
        gradient_bytes=np.array([compression.sent_bytes(float(size), width) for size in sizes]),
    )


def named_layers(parts: Partition, times: DeviceTimes) -> list[LayerTime]:
    """Times of each layer by name, in the order of the network."""
    columns = np.stack(
        [
            times.forward,
            times.backward,
            times.gradient_bytes,
            times.recompute,
            times.forward_exchange,
            times.backward_exchange,
        ],
        axis=1,
    )[parts.classes.of_layer].tolist()
    nodes = parts.workload.graph.nodes
    return [LayerTime(node.name, *row) for node, row in zip(nodes, columns, strict=True)]
