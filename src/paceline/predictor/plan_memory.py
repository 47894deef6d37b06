"""Memory of a plan on its fullest device."""

from collections.abc import Callable, Sequence

from paceline.plan.activations import loss_working_bytes, working_bytes
from paceline.plan.blocks import blocks
from paceline.plan.memory import (
    Memory,
    Numbers,
    buffer_bytes,
    micro_batches_held,
    optimiser_bytes_per_parameter,
    sharded_bytes,
)
from paceline.plan.plan import PipelineSchedule, Plan, Recompute
from paceline.plan.sharding import ShardedLayer
from paceline.plan.synchronisation import Synchronisation
from paceline.predictor.replica import Replica
from paceline.predictor.stages import Chunk
from paceline.workload.cost import LayerProfile


def plan_memory(
    replica: Replica, chunks: Sequence[Chunk], synchronisation: Synchronisation
) -> Memory:
    """Bytes by part on the stage that needs most."""
    stages = [
        _stage_memory(replica, stage, chunks[stage :: replica.plan.pp], synchronisation)
        for stage in range(replica.plan.pp)
    ]
    return max(stages, key=lambda memory: float(memory.total_bytes))


def _stage_memory(
    replica: Replica, stage: int, chunks: Sequence[Chunk], synchronisation: Synchronisation
) -> Memory:
    plan, workload = replica.plan, replica.workload
    widths = replica.precision
    own = [i for chunk in chunks for i in chunk.positions]
    parts = [replica.parts[i] for i in own]
    state_width = optimiser_bytes_per_parameter(workload.optimiser, widths)
    weights = _sharded(plan, parts, 3, lambda p: float(p.parameters * widths.weight_bytes))
    gradients = _sharded(plan, parts, 2, lambda p: _kept_gradient_bytes(replica, p))
    state = _sharded(plan, parts, 1, lambda p: float(p.trainable_parameters * state_width))
    whole = sum(float(part.profile.gradient_bytes.at(workload.batch)) for part in parts)
    buffers: Numbers = 0.0
    if plan.shard_degree > 1:
        buffers = buffer_bytes(
            whole,
            synchronisation.bucket_bytes,
            _largest(replica),
            plan.zero,
            copies_gradients=replica.framework.copies_gradients(synchronisation),
        )
    return Memory(weights, gradients, state, _activations(replica, stage, own), buffers)


def _kept_gradient_bytes(replica: Replica, profile: LayerProfile) -> float:
    kept = replica.framework.gradient_bytes_kept(replica.workload.precision)
    size = float(profile.gradient_bytes.at(replica.workload.batch))
    return size * kept / replica.precision.gradient_bytes


def _sharded(
    plan: Plan, parts: Sequence[ShardedLayer], stage: int, size: Callable[[LayerProfile], float]
) -> Numbers:
    """Bytes of something that sharding of ``stage`` shares out: experts among fewer devices."""
    total = sum(size(part.profile) for part in parts)
    experts = sum(size(part.profile) * part.expert_share for part in parts)
    holders = plan.shard_degree // plan.ep
    return sharded_bytes(total - experts, stage, plan.zero, plan.shard_degree) + sharded_bytes(
        experts, stage, plan.zero, holders
    )


def _activations(replica: Replica, stage: int, own: Sequence[int]) -> float:
    plan, batch = replica.plan, replica.share_of_batch
    kept = sum(float(replica.kept.sizes[i].at(batch)) for i in own)
    held = micro_batches_held(
        stage,
        plan.pp,
        replica.micro_batches if plan.pp > 1 else 1,
        plan.interleave,
        plan.pipeline is PipelineSchedule.GPIPE and plan.pp > 1,
    )
    passing = 0.0
    if plan.recompute is Recompute.FULL:
        passing = float(working_bytes(replica.parts, replica.sharding).at(batch))
    if stage == plan.pp - 1:
        scores = float(loss_working_bytes(replica.parts, replica.sharding).at(batch))
        passing = max(passing, scores)
    return kept * float(held) + passing


def _largest(replica: Replica) -> float:
    """Weights of the largest block, whole."""
    return max(
        sum(replica.weight_bytes[part.first : part.last]) for part in blocks(replica.workload.graph)
    )
