"""The optimiser's update of a replica."""

from collections.abc import Sequence

from paceline.plan.memory import optimiser_bytes_per_parameter
from paceline.predictor.compute import update_seconds
from paceline.predictor.replica import Replica
from paceline.predictor.stages import Chunk
from paceline.workload.precision import Precision


def update_traffic_bytes(optimiser: str, number_format: Precision) -> int:
    """Bytes an update moves per parameter: gradient read, weight and state read and written."""
    state = optimiser_bytes_per_parameter(optimiser, number_format)
    return number_format.gradient_bytes + 2 * number_format.weight_bytes + 2 * state


def stage_update_seconds(replica: Replica, chunks: Sequence[Chunk]) -> list[float]:
    """Seconds that each pipeline stage takes to update its weights, or its shard of them."""
    workload, plan = replica.workload, replica.plan
    widths = replica.precision
    moved = update_traffic_bytes(workload.optimiser, widths)
    shards = plan.shard_degree if plan.zero >= 1 else 1
    result = []
    for stage in range(plan.pp):
        own = [i for chunk in chunks[stage :: plan.pp] for i in chunk.positions]
        gradients = [replica.parts[i].profile.gradient_bytes.at(workload.batch) for i in own]
        parameters = sum(map(float, gradients)) / widths.gradient_bytes
        if parameters == 0:
            result.append(0.0)
            continue
        seconds = update_seconds(
            parameters / shards, moved, replica.cluster.device, replica.efficiency
        )
        result.append(float(seconds))
    return result
