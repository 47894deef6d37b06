"""Memory of a plan on its fullest device."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from paceline.constants import number
from paceline.predictor.framework_profiles import FrameworkProfile
from paceline.predictor.memory.activations import (
    context_bytes,
    whole_bytes,
    working_bytes,
)
from paceline.predictor.memory.allocator_lag import released_to_fit, unreleased_bytes
from paceline.predictor.memory.memory_parts import (
    Memory,
    Numbers,
    buffer_bytes,
    micro_batches_held,
    optimizer_bytes_per_parameter,
    sharded_bytes,
)
from paceline.predictor.memory.offload import moved_bytes
from paceline.predictor.memory.placeholder_gradients import (
    has_placeholders,
    output_placeholder_bytes,
    placeholder_bytes,
)
from paceline.predictor.memory.recomputed_modules import transient_bytes
from paceline.predictor.partition.partition import Partition, habits_of, weights_at
from paceline.predictor.plan.plan_choices import Offload, PipelineSchedule, Recompute
from paceline.predictor.schedule.pipeline_orders import peaks_held
from paceline.workload.blocks import blocks
from paceline.workload.cost import LayerProfile

Array = NDArray[np.float64]


def fullest(stages: Sequence[Memory]) -> Memory:
    """The memory of the stage that needs most."""
    return max(stages, key=lambda memory: float(memory.total_bytes))


def stage_memories(parts: Partition, counts: Array) -> tuple[Memory, ...]:
    """Stage 6, memory: bytes by part on a device of each pipeline stage.

    ``counts`` (stage, kind) is the number of layers of each kind on each stage.
    """
    stages = _stages_memory(parts, counts)
    sizes = [np.broadcast_to(size, parts.plan.pp) for size in stages.parts().values()]
    return tuple(Memory(*(float(size[stage]) for size in sizes)) for stage in range(parts.plan.pp))


def largest_tensor(profiles: Iterable[LayerProfile]) -> float:
    """Parameters of the largest trained tensor."""
    return max((float(size) for part in profiles for _, size in part.tensors), default=0.0)


def allocator_bytes(activations: Numbers, profile: FrameworkProfile) -> Numbers:
    """Allocator fragmentation, as a share of activations.

    Megatron-LM prints the bytes that it allocates, which have none.
    """
    return (0.0 if profile.prints_allocated else number("spread.memory.gaps_share")) * activations


def _stages_memory(parts: Partition, counts: Array) -> Memory:
    """Bytes by part on all stages; ``counts`` (stage, kind) is the number of layers."""
    plan, workload, widths = parts.plan, parts.workload, parts.precision
    synchronisation = parts.synchronisation
    profiles = [part.profile for part in parts.kinds]
    state_width = optimizer_bytes_per_parameter(workload.optimizer, widths, plan.optimizer_state)
    gradients = np.array([float(p.gradient_bytes.at(workload.batch)) for p in profiles])
    kept_width = parts.framework.gradient_bytes_kept(workload.precision)
    short = kept_width - widths.gradient_bytes
    weights = weights_at(workload, parts.kinds, widths.weight_bytes, parts.classes.first)
    trained = np.array([float(p.trainable_parameters * state_width) for p in profiles])
    buffers: Numbers = 0.0
    if plan.holders > 1 or Offload.WEIGHTS in plan.offload:
        buffers = buffer_bytes(
            counts @ gradients,
            synchronisation.bucket_bytes,
            _largest(parts),
            plan.zero,
            copies_gradients=parts.framework.copies_gradients(synchronisation),
        )
    if has_placeholders(parts):
        graph, kind_of = parts.sharding.graph, parts.classes.of_layer.tolist()
        buffers += placeholder_bytes(graph, parts.kinds, kind_of, plan.ep, widths.weight_bytes)
    activations = _activations(parts, counts)
    gaps = allocator_bytes(activations, parts.framework)
    memory = Memory(
        0.0 if Offload.WEIGHTS in plan.offload else _sharded(parts, counts, 3, weights),
        _sharded(parts, counts, 2, gradients * kept_width / widths.gradient_bytes),
        0.0 if Offload.OPTIMIZER in plan.offload else _sharded(parts, counts, 1, trained),
        activations,
        buffers + short * largest_tensor(profiles) + gaps,
    )
    if not parts.framework.whole_tensors_wait:
        return memory
    capacity = parts.cluster.device.memory_bytes
    waiting = released_to_fit(_waiting(parts, counts), memory.total_bytes, capacity)
    return replace(memory, activations_bytes=activations + waiting)


def _sharded(parts: Partition, counts: Array, stage: int, sizes: Array) -> Numbers:
    """Bytes per device of data sharded from ZeRO ``stage`` on; experts have fewer shards."""
    plan = parts.plan
    experts = counts @ (sizes * [part.expert_share for part in parts.kinds])
    holders = plan.expert_holders // plan.shard_copies
    rest = counts @ sizes - experts
    return sharded_bytes(rest, stage, plan.zero, plan.shard_degree) + sharded_bytes(
        experts, stage, plan.zero, holders
    )


def _activations(parts: Partition, counts: Array) -> Numbers:
    plan, batch = parts.plan, parts.share_of_batch
    held = _held(parts)
    passing = np.full(plan.pp, _context_bytes(parts))
    if plan.recompute in (Recompute.FULL, Recompute.OPERATION):
        # Backward releases the feed-forward network of a block before it arrives at attention.
        whole, attention = (
            float(working_bytes(parts.layers, parts.sharding, until).at(batch))
            for until in (False, True)
        )
        passing = np.maximum(passing + attention, whole)
    if plan.recompute_modules:
        modules = plan.recompute_modules
        largest = transient_bytes(parts.sharding, modules, plan.tp, plan.sequence_parallel)
        passing += float(largest.at(batch))
    loss, placeholder = (
        habits_of(plan, parts.framework).loss,
        output_placeholder_bytes(parts, plan.tp),
    )
    scores = float(loss.peak_bytes(parts.layers, parts.sharding, batch, placeholder))
    head = 0 if plan.pipeline.is_v else -1
    passing[head] = max(passing[head], scores)
    kept = _kept(parts, counts)
    all_held = kept * held
    if Offload.ACTIVATIONS in plan.offload:
        # Two blocks stay: the one that computes, and the one that is on its way.
        moved = counts @ moved_bytes(parts) * held
        all_held = all_held - moved + np.minimum(moved, 2.0 * _fullest_block(parts))
    return np.asarray(all_held + passing)


def _kept(parts: Partition, counts: Array) -> Array:
    """Kept activations of one micro-batch by stage.

    Layers route independently, so the sum of their loads on one device is nearer to the mean than
    the busiest device of a layer is: of n layers, the excess is 1 / sqrt(n) of that of one.
    """
    sizes = np.array([float(size.at(parts.share_of_batch)) for size in parts.kept.sizes])
    experts = counts @ [float(part.is_expert) for part in parts.kinds]
    excess = (parts.loads - 1.0) * sizes
    return np.asarray(counts @ sizes + counts @ excess / np.sqrt(np.maximum(experts, 1.0)))


def _fullest_block(parts: Partition) -> float:
    """Kept bytes of the largest block for one micro-batch."""
    moved = moved_bytes(parts)[parts.classes.of_layer]
    return max(float(moved[part.first : part.last].sum()) for part in blocks(parts.workload.graph))


def _held(parts: Partition) -> Numbers:
    """Micro-batches in flight on each stage at its peak."""
    plan = parts.plan
    if plan.pipeline.splits_backward:
        return np.array(peaks_held(plan.pipeline, plan.pp, parts.micro_batches))
    return micro_batches_held(
        np.arange(plan.pp, dtype=np.float64),
        plan.pp,
        parts.micro_batches if plan.pp > 1 else 1,
        plan.interleave,
        plan.pipeline is PipelineSchedule.GPIPE and plan.pp > 1,
    )


def _context_bytes(parts: Partition) -> float:
    """Temporary buffers of context parallelism."""
    if parts.plan.cp == 1:
        return 0.0
    batch, width = parts.share_of_batch, parts.precision.activation_bytes
    sizes = (
        context_bytes(part.context, parts.cp_impl, parts.plan.cp, width).at(batch)
        for part in parts.kinds
        if part.context is not None
    )
    return float(max(sizes, default=0.0))


def _waiting(parts: Partition, counts: Array) -> Numbers:
    """Unreleased gathered tensors by stage, with allocator fragmentation."""
    plan, batch = parts.plan, parts.share_of_batch
    whole = np.array([float(whole_bytes(part, plan.tp).at(batch)) for part in parts.kinds])
    flops = counts @ [float(part.profile.forward_flops.at(batch)) for part in parts.kinds]
    size = unreleased_bytes(
        parts, counts @ whole, float(whole.max()), flops, plan.tp, plan.pp, parts.micro_batches
    )
    return np.asarray(size + allocator_bytes(size, parts.framework))


def _largest(parts: Partition) -> float:
    """Weights of the largest block, whole."""
    sizes = np.add.reduceat(
        weights_at(parts.workload, parts.kinds, parts.precision.operand_bytes, parts.classes.first)[
            parts.classes.of_layer
        ],
        [unit.first for unit in blocks(parts.workload.graph)],
    )
    return float(sizes.max())
