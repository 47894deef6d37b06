"""Bringing a batch to the device."""

import math

from paceline.predictor.replica import Replica
from paceline.workload.graph import SEQUENCE, InputSpec

_INDEX_BYTES = 8
_FLOAT_BYTES = 4


def copy_seconds(replica: Replica) -> float:
    """Seconds to copy a step's batch from host memory to the device; 0 where no link is known.

    A processor computes on host memory and copies nothing.
    """
    host = replica.cluster.host
    if host is None or host.bandwidth is None:
        return 0.0
    workload = replica.workload
    per_sample = sum(
        sample_bytes(spec, workload.tokens_per_sample) for spec in workload.graph.inputs.values()
    )
    return workload.batch / replica.plan.cp * per_sample / host.bandwidth


def sample_bytes(spec: InputSpec, sequence: int) -> float:
    """Bytes of one sample of an input as it is loaded: 32-bit floats, 64-bit integers."""
    sizes = [sequence if size == SEQUENCE else int(size) for size in spec.shape]
    return math.prod(sizes) * (_INDEX_BYTES if spec.dtype == "integer" else _FLOAT_BYTES)
