"""Memory of gathered tensors that is not free until the device catches up with the host."""

import numpy as np

from paceline.constants import number
from paceline.predictor.memory.memory_parts import Numbers
from paceline.predictor.partition.partition import Partition

_GATHERED = 2
"""Persistent gather buffers: one of forward, one of backward."""


def unreleased_bytes(
    parts: Partition,
    whole: Numbers,
    largest: Numbers,
    forward_flops: Numbers,
    pp: Numbers,
    micro_batches: Numbers,
) -> Numbers:
    """Memory of gathered tensors of a stage that are unused but not yet released.

    Forward of one micro-batch allocates ``whole`` bytes of them, each at most ``largest`` bytes,
    with ``forward_flops`` FLOP. The host runs ahead of the device until the launch queue is full;
    with no more micro-batches than stages, by half a forward pass. In a pipeline whose device
    computes faster than the host issues work, it is ahead only by a share of each forward pass
    that fills the pipeline. Constants are fitted to nanotron peaks
    (docs/explanation/predictor.md, Memory).
    """
    ahead = number("spread.memory.tensors_ahead") * largest
    ahead = np.where(np.asarray(micro_batches) > pp, ahead, np.minimum(ahead, whole / 2.0))
    filling = number("spread.memory.share_while_filling") * (pp - 1.0) * whole
    peak = parts.cluster.device.peak(parts.precision.compute)
    issued = number("spread.memory.host_time") * peak * whole
    free = (np.asarray(pp) == 1) | (forward_flops * np.asarray(largest) > issued)
    return np.asarray(np.where(free, ahead, np.minimum(ahead, filling)) + _GATHERED * largest)
