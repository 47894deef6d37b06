"""Host-to-device copies of batches, and weight updates."""

import math

import numpy as np

from paceline.predictor.kernels.efficiency import Efficiency
from paceline.predictor.kernels.roofline import update_seconds
from paceline.predictor.memory.memory_parts import optimizer_bytes_per_parameter
from paceline.predictor.memory.offload import host_update_seconds
from paceline.predictor.partition.partition import Array, Partition
from paceline.predictor.plan.plan_choices import Offload, OptimizerState
from paceline.workload.cost import Number
from paceline.workload.graph import SEQUENCE, InputSpec
from paceline.workload.precision import Precision

_INDEX_BYTES = 8
_FLOAT_BYTES = 4


def copy_seconds(parts: Partition) -> float:
    """Seconds to copy a batch from host memory to the device; 0 without a known link.

    A CPU computes in host memory, so nothing is copied.
    """
    host = parts.cluster.host
    if host is None or host.bandwidth is None:
        return 0.0
    workload = parts.workload
    per_sample = sum(
        sample_bytes(spec, workload.tokens_per_sample) for spec in workload.graph.inputs.values()
    )
    return workload.batch / parts.plan.cp * per_sample / host.bandwidth


def sample_bytes(spec: InputSpec, sequence: int) -> float:
    """Bytes of one sample as a data loader provides it: 32-bit floats, 64-bit integers."""
    sizes = [sequence if size == SEQUENCE else int(size) for size in spec.shape]
    return math.prod(sizes) * (_INDEX_BYTES if spec.dtype == "integer" else _FLOAT_BYTES)


def update_traffic_bytes(
    optimizer: str, number_format: Precision, state: OptimizerState = OptimizerState.FP32
) -> float:
    """Memory traffic of an update per parameter: read gradient, read and write weight and state."""
    kept = optimizer_bytes_per_parameter(optimizer, number_format, state)
    return number_format.gradient_bytes + 2 * number_format.weight_bytes + 2 * kept


def whole_update_seconds(
    parts: Partition,
    parameters: Number,
    efficiency: Efficiency | None = None,
    bytes_per_second: Number | None = None,
) -> Number:
    """Seconds of the update of ``parameters`` numbers on the device of a partition."""
    workload, device = parts.workload, parts.cluster.device
    moved = update_traffic_bytes(workload.optimizer, parts.precision, parts.plan.optimizer_state)
    return update_seconds(parameters, moved, device, efficiency, bytes_per_second=bytes_per_second)


def stage_update_seconds(
    parts: Partition,
    counts: Array,
    efficiency: Efficiency | None = None,
    measured: float | None = None,
) -> tuple[float, ...]:
    """Seconds of the weight update of each pipeline stage, or of its shard.

    ``counts`` (stage, kind) are the numbers of layers on each stage; ``measured`` is the update of
    the whole model on one device.
    """
    workload, plan, widths = parts.workload, parts.plan, parts.precision
    shards = plan.shard_degree if plan.zero >= 1 else 1
    if measured is not None:
        held = counts @ [float(part.profile.parameters) for part in parts.kinds]
        whole = workload.profile.parameters or 1
        return tuple((measured * held / (shards * whole)).tolist())
    gradients = [float(part.profile.gradient_bytes.at(workload.batch)) for part in parts.kinds]
    parameters = counts @ gradients / widths.gradient_bytes
    if Offload.OPTIMIZER in plan.offload:
        moved = update_traffic_bytes(workload.optimizer, widths, plan.optimizer_state)
        passed = widths.gradient_bytes + widths.weight_bytes
        return tuple(
            host_update_seconds(float(own) / shards, moved, passed, parts.cluster)
            for own in parameters
        )
    seconds = whole_update_seconds(parts, parameters / shards, efficiency)
    return tuple(np.where(parameters > 0, seconds, 0.0).tolist())
