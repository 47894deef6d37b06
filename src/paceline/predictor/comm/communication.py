"""Stage 3, communication: what travels, on which links, and for how long."""

from collections.abc import Mapping
from dataclasses import dataclass

from paceline.predictor.comm.gradient_exchange import gradient_exchange
from paceline.predictor.comm.layer_comm import ReplicaMessages
from paceline.predictor.comm.replica_comm import replica_messages
from paceline.predictor.kernels.layer_times import LayerTimes
from paceline.predictor.partition.partition import Array, Partition
from paceline.predictor.partition.pipeline_stages import Chunk, chunks_of, stage_counts
from paceline.predictor.schedule.device_times import device_times
from paceline.predictor.schedule.step_costs import CollectiveSeconds, GradientExchange


@dataclass(frozen=True, eq=False)
class Communication:
    """Messages of a step.

    ``within`` are those of each layer among the devices of a replica. ``gradients`` are those among
    replicas; None for a single replica. ``chunks`` are the runs of layers between which a pipeline
    sends activations; one without a pipeline. ``stage_counts`` (stage, kind) are the numbers of
    layers of each kind on each pipeline stage.
    """

    within: ReplicaMessages
    gradients: GradientExchange | None
    chunks: tuple[Chunk, ...]
    stage_counts: Array


def communication(
    parts: Partition, layers: LayerTimes, all_reduce: Mapping[int, CollectiveSeconds]
) -> Communication:
    """The messages of a step; ``all_reduce`` has measured times by number of ranks.

    Layer times matter because they decide where a pipeline of unequal blocks is cut.
    """
    within = replica_messages(parts)
    gradients = gradient_exchange(parts)
    measured = all_reduce.get(parts.plan.holders)
    if gradients is not None and measured is not None:
        gradients = gradients.with_all_reduce(measured)
    if parts.plan.pp == 1:
        chunks: tuple[Chunk, ...] = (Chunk(0, len(parts.workload.graph.nodes), 0.0),)
    else:
        chunks = chunks_of(parts, device_times(parts, layers, within))
    return Communication(within, gradients, chunks, stage_counts(parts, chunks))
