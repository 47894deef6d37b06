"""Memory of gathered tensors that is not free until the device catches up with the host."""

import numpy as np

from paceline.constants import number
from paceline.predictor.memory.memory_parts import Numbers
from paceline.predictor.partition.partition import Partition

_GATHERED = 2
"""Persistent gather buffers: one of forward, one of backward."""


_MEASURED_TP = 8
"""Tensor-parallel degree of the host time; it grows as the floor of a block does (25, 55 and 155 ms
at 8, 16 and 32 devices in pipelines of the reference layouts)."""
_GROWTH = 1.5


def unreleased_bytes(
    parts: Partition,
    whole: Numbers,
    largest: Numbers,
    forward_flops: Numbers,
    tp: Numbers,
    pp: Numbers,
    micro_batches: Numbers,
) -> Numbers:
    """Memory of gathered tensors of a stage that are unused but not yet released.

    Forward of one micro-batch allocates ``whole`` bytes of them, each at most ``largest`` bytes,
    with ``forward_flops`` FLOP. The host runs ahead of the device until the launch queue is full,
    or by half a forward pass of the only micro-batch. In a pipeline whose device computes faster
    than the host issues work, the host is ahead only while the first sends block the device: by
    what it issues in that time, at most the passes between the first and the last that fill the
    pipeline. Constants are fitted to nanotron peaks (docs/explanation/predictor.md, Memory).
    """
    host = number("spread.memory.host_time") * (np.asarray(tp) / _MEASURED_TP) ** _GROWTH
    queue = number("spread.memory.tensors_ahead") * np.asarray(largest)
    blocked = number("spread.memory.blocked_time") / host * largest
    filling = np.minimum(np.minimum(queue, blocked), np.maximum(np.asarray(pp) - 2.0, 0.0) * whole)
    peak = parts.cluster.device.peak(parts.precision.compute)
    follows = (np.asarray(pp) > 1) & (forward_flops * np.asarray(largest) < host * peak * whole)
    alone = (np.asarray(pp) == 1) & (np.asarray(micro_batches) <= 1)
    ahead = np.where(alone, np.minimum(queue, whole / 2.0), queue)
    return np.asarray(np.where(follows, filling, ahead) + _GATHERED * largest)


def released_to_fit(unreleased: Numbers, others: Numbers, capacity: float | None) -> Numbers:
    """Unreleased bytes, at most what is left of ``capacity`` besides ``others``.

    An allocator that finds no memory waits for the device and releases them.
    """
    if capacity is None:
        return unreleased
    return np.minimum(unreleased, np.maximum(capacity - others, 0.0))
