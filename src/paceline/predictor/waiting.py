"""Memory of whole tensors that is free again only when the device has caught up with the host."""

import numpy as np

from paceline.constants import number
from paceline.plan.memory import Numbers
from paceline.predictor.replica import Replica

_GATHERED = 2
"""Whole tensors that stay: what forward and what backward gather into."""


def waiting_bytes(
    replica: Replica,
    whole: Numbers,
    largest: Numbers,
    forward_flops: Numbers,
    pp: Numbers,
    micro_batches: Numbers,
) -> Numbers:
    """Memory of the whole tensors of a stage that tensor-parallel devices no longer use.

    Forward of one micro-batch makes ``whole`` bytes of them, none of more than ``largest`` bytes,
    with ``forward_flops`` FLOP. The host runs ahead of the device until the queue of the device is
    full; where there are no more micro-batches than stages, by half a forward pass. In a pipeline
    whose device computes faster than the host issues work it gets ahead only by a share of each
    forward pass that fills the pipeline.
    """
    ahead = number("spread.memory.tensors_ahead") * largest
    ahead = np.where(np.asarray(micro_batches) > pp, ahead, np.minimum(ahead, whole / 2.0))
    filling = number("spread.memory.share_while_filling") * (pp - 1.0) * whole
    peak = replica.cluster.device.peak(replica.precision.compute)
    issued = number("spread.memory.host_time") * peak * whole
    free = (np.asarray(pp) == 1) | (forward_flops * np.asarray(largest) > issued)
    return np.asarray(np.where(free, ahead, np.minimum(ahead, filling)) + _GATHERED * largest)
