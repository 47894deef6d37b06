"""Stage 2, layer times: computing seconds of each kind of layer, measured or modelled."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from paceline.constants import number
from paceline.predictor.kernels.efficiency import Efficiency
from paceline.predictor.kernels.layer_arrays import LayerArrays
from paceline.predictor.kernels.roofline import check_measured, executed_share
from paceline.predictor.partition.partition import Partition, frozen_parameters
from paceline.predictor.schedule.step_costs import LayerTime
from paceline.workload.adapters import are_quantised
from paceline.workload.cost import GraphCost, GraphProfile

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class LayerTimes:
    """Seconds of each kind of layer for one micro-batch on one device that computes alone.

    ``measured`` marks kinds whose times were measured.
    """

    forward: Array
    backward: Array
    measured: NDArray[np.bool_]


def layer_times(
    parts: Partition, efficiency: Efficiency | None = None, measured: Sequence[LayerTime] = ()
) -> LayerTimes:
    """Roofline times of each kind of layer; ``measured`` ones replace them by name."""
    names = [part.profile.name for part in parts.kinds]
    known = {layer.name: layer for layer in measured}
    is_measured = np.array([name in known for name in names])
    if is_measured.all():
        forward, backward = np.zeros((2, len(names)))
    else:
        check_measured(names, measured)
        forward, backward = _modelled(parts, efficiency)
    for kind in np.flatnonzero(is_measured):
        forward[kind] = known[names[kind]].forward_seconds
        backward[kind] = known[names[kind]].backward_seconds
    return LayerTimes(forward, backward, is_measured)


def executed_flop_share(parts: Partition, efficiency: Efficiency | None = None) -> float:
    """Executed FLOP over FLOP of the model; below 1 with Winograd convolutions."""
    layers = parts.workload.profile.layers
    return executed_share(
        GraphCost(
            GraphProfile(tuple(layers[i] for i in parts.classes.first)), parts.share_of_batch
        ),
        parts.cluster.device,
        parts.precision,
        efficiency,
        parts.framework.convolution,
        parts.classes.all_counts,
    )


def _modelled(parts: Partition, efficiency: Efficiency | None) -> Array:
    """Forward and backward by kind, with dequantisation of frozen weights (QLoRA)."""
    arrays = LayerArrays(parts, parts.kinds, efficiency)
    seconds = arrays.seconds(np.asarray(parts.share_of_batch))
    frozen = parts.workload.frozen_bytes
    if frozen is not None:
        # Each pass reads the stored weights and writes them in the compute format.
        rate = parts.cluster.device.known_memory_bandwidth * number("kernels.limits.dequantised")
        width = (frozen + parts.precision.operand_bytes) / rate
        converted = are_quantised(parts.workload.graph, parts.classes.first)
        seconds += [
            width * frozen_parameters(part.profile) * quantised
            for part, quantised in zip(parts.kinds, converted, strict=True)
        ]
    return np.asarray(seconds)
