"""Memory of a plan on its fullest device."""

from collections.abc import Sequence

from paceline.plan.activations import working_bytes
from paceline.plan.blocks import blocks
from paceline.plan.memory import (
    Memory,
    buffer_bytes,
    micro_batches_held,
    optimiser_bytes_per_parameter,
    sharded_bytes,
)
from paceline.plan.plan import PipelineSchedule, Recompute
from paceline.plan.synchronisation import Synchronisation
from paceline.predict.replica import Replica
from paceline.predict.stages import Chunk
from paceline.workload.precision import precision


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
    widths = precision(workload.precision)
    own = [i for chunk in chunks for i in chunk.positions]
    parameters = sum(replica.parts[i].profile.parameters for i in own)
    gradients = parameters * widths.gradient_bytes
    state = parameters * optimiser_bytes_per_parameter(workload.optimiser, widths)
    shards = plan.shard_degree
    return Memory(
        weights_bytes=sharded_bytes(parameters * widths.weight_bytes, 3, plan.zero, shards),
        gradients_bytes=sharded_bytes(gradients, 2, plan.zero, shards),
        optimiser_bytes=sharded_bytes(state, 1, plan.zero, shards),
        activations_bytes=_activations(replica, stage, own),
        buffers_bytes=0.0
        if shards == 1
        else buffer_bytes(gradients, synchronisation.bucket_bytes, _largest(replica), plan.zero),
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
    again = 0.0
    if plan.recompute is Recompute.FULL:
        again = float(working_bytes(replica.parts, replica.sharding).at(batch))
    return kept * float(held) + again


def _largest(replica: Replica) -> float:
    """Weights of the largest block, whole."""
    return max(
        sum(replica.weight_bytes[part.first : part.last]) for part in blocks(replica.workload.graph)
    )
