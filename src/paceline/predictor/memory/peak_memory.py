"""Memory of a plan on its fullest device."""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from paceline.constants import number
from paceline.predictor.framework_profiles import FrameworkProfile
from paceline.predictor.memory.activations import (
    context_bytes,
    loss_working_bytes,
    whole_bytes,
    working_bytes,
)
from paceline.predictor.memory.allocator_lag import unreleased_bytes
from paceline.predictor.memory.memory_parts import (
    Memory,
    Numbers,
    buffer_bytes,
    micro_batches_held,
    optimiser_bytes_per_parameter,
    sharded_bytes,
)
from paceline.predictor.partition.pipeline_stages import Chunk, stage_counts
from paceline.predictor.partition.replica import Replica
from paceline.predictor.plan.plan_choices import Offload, PipelineSchedule, Recompute
from paceline.predictor.plan.sync_policy import Synchronisation
from paceline.predictor.schedule.zero_bubble_orders import peaks_held
from paceline.workload.blocks import blocks
from paceline.workload.cost import LayerProfile

Array = NDArray[np.float64]


def plan_memory(
    replica: Replica, chunks: Sequence[Chunk], synchronisation: Synchronisation
) -> Memory:
    """Bytes by part on the stage that needs most."""
    stages = stage_memories(replica, chunks, synchronisation)
    return max(stages, key=lambda memory: float(memory.total_bytes))


def stage_memories(
    replica: Replica, chunks: Sequence[Chunk], synchronisation: Synchronisation
) -> list[Memory]:
    """Bytes by part on a device of each pipeline stage."""
    stages = _stages_memory(replica, stage_counts(replica, chunks), synchronisation)
    parts = [np.broadcast_to(part, replica.plan.pp) for part in stages.parts().values()]
    return [Memory(*(float(part[stage]) for part in parts)) for stage in range(replica.plan.pp)]


def largest_tensor(profiles: Iterable[LayerProfile]) -> float:
    """Parameters of the largest trained tensor."""
    return max((float(size) for part in profiles for _, size in part.tensors), default=0.0)


def allocator_bytes(activations: Numbers, profile: FrameworkProfile) -> Numbers:
    """Allocator fragmentation, as a share of activations.

    The share is larger for frameworks whose kept tensors were not read in their code.
    """
    share = "gaps_share" if profile.memory_from_code else "allocator_share"
    return number(f"spread.memory.{share}") * activations


def _stages_memory(replica: Replica, counts: Array, synchronisation: Synchronisation) -> Memory:
    """Bytes by part on all stages; ``counts`` (stage, kind) is the number of layers."""
    plan, workload, widths = replica.plan, replica.workload, replica.precision
    profiles = [part.profile for part in replica.kinds]
    state_width = optimiser_bytes_per_parameter(workload.optimiser, widths, plan.optimiser_state)
    gradients = np.array([float(p.gradient_bytes.at(workload.batch)) for p in profiles])
    kept_width = replica.framework.gradient_bytes_kept(workload.precision)
    short = kept_width - widths.gradient_bytes
    weights = np.array(replica.weights_at(widths.weight_bytes))
    trained = np.array([float(p.trainable_parameters * state_width) for p in profiles])
    buffers: Numbers = 0.0
    if plan.holders > 1:
        buffers = buffer_bytes(
            counts @ gradients,
            synchronisation.bucket_bytes,
            _largest(replica),
            plan.zero,
            copies_gradients=replica.framework.copies_gradients(synchronisation),
        )
    activations = _activations(replica, counts)
    gaps = allocator_bytes(activations, replica.framework)
    return Memory(
        _sharded(replica, counts, 3, weights),
        _sharded(replica, counts, 2, gradients * kept_width / widths.gradient_bytes),
        0.0 if Offload.OPTIMISER in plan.offload else _sharded(replica, counts, 1, trained),
        activations,
        buffers + short * largest_tensor(profiles) + gaps,
    )


def _sharded(replica: Replica, counts: Array, stage: int, sizes: Array) -> Numbers:
    """Bytes per device of data sharded from ZeRO ``stage`` on; experts have fewer shards."""
    plan = replica.plan
    experts = counts @ (sizes * [part.expert_share for part in replica.kinds])
    holders = plan.shard_degree // plan.ep
    rest = counts @ sizes - experts
    return sharded_bytes(rest, stage, plan.zero, plan.shard_degree) + sharded_bytes(
        experts, stage, plan.zero, holders
    )


def _activations(replica: Replica, counts: Array) -> Numbers:
    plan, batch = replica.plan, replica.share_of_batch
    held = _held(replica)
    passing = np.zeros(plan.pp)
    if plan.recompute in (Recompute.FULL, Recompute.OPERATION):
        passing += float(working_bytes(replica.parts, replica.sharding).at(batch))
    passing += _context_bytes(replica)
    in_place = replica.framework.loss_in_place
    scores = float(loss_working_bytes(replica.parts, replica.sharding, in_place).at(batch))
    head = 0 if plan.pipeline.is_v else -1
    passing[head] = max(passing[head], scores)
    sizes = zip(replica.loads, replica.kept.sizes, strict=True)
    kept = counts @ [load * float(size.at(batch)) for load, size in sizes]
    all_held = kept * held
    if Offload.ACTIVATIONS in plan.offload:
        # Two blocks stay: the one that computes, and the one that is on its way.
        moved = counts @ np.array(replica.moved_bytes) * held
        all_held = all_held - moved + np.minimum(moved, 2.0 * _fullest_block(replica))
    return all_held + passing + _waiting(replica, counts)


def _fullest_block(replica: Replica) -> float:
    """Kept bytes of the largest block for one micro-batch."""
    moved = replica.each(replica.moved_bytes)
    return max(sum(moved[part.first : part.last]) for part in blocks(replica.workload.graph))


def _held(replica: Replica) -> Numbers:
    """Micro-batches in flight on each stage at its peak."""
    plan = replica.plan
    if plan.pipeline.splits_backward:
        return np.array(peaks_held(plan.pipeline, plan.pp, replica.micro_batches))
    return micro_batches_held(
        np.arange(plan.pp, dtype=np.float64),
        plan.pp,
        replica.micro_batches if plan.pp > 1 else 1,
        plan.interleave,
        plan.pipeline is PipelineSchedule.GPIPE and plan.pp > 1,
    )


def _context_bytes(replica: Replica) -> float:
    """Temporary buffers of context parallelism."""
    if replica.plan.cp == 1:
        return 0.0
    batch, width = replica.share_of_batch, replica.precision.activation_bytes
    sizes = (
        context_bytes(part.context, replica.context_form, replica.plan.cp, width).at(batch)
        for part in replica.kinds
        if part.context is not None
    )
    return float(max(sizes, default=0.0))


def _waiting(replica: Replica, counts: Array) -> Numbers:
    """Unreleased gathered tensors by stage."""
    if not replica.framework.whole_tensors_wait:
        return 0.0
    plan, batch = replica.plan, replica.share_of_batch
    whole = np.array([float(whole_bytes(part, plan.tp).at(batch)) for part in replica.kinds])
    flops = counts @ [float(part.profile.forward_flops.at(batch)) for part in replica.kinds]
    largest = float(whole.max())
    return unreleased_bytes(replica, counts @ whole, largest, flops, plan.pp, replica.micro_batches)


def _largest(replica: Replica) -> float:
    """Weights of the largest block, whole."""
    return max(
        sum(replica.weight_bytes[part.first : part.last]) for part in blocks(replica.workload.graph)
    )
