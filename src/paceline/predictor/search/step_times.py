"""Step times of all plans of a grid: the scheduler's steps in closed form, vectorised."""

from collections.abc import Sequence

import numpy as np

from paceline.predictor.kernels.copy_and_update import update_traffic_bytes
from paceline.predictor.kernels.layer_arrays import Array
from paceline.predictor.kernels.roofline import update_seconds
from paceline.predictor.plan.plan_choices import PipelineSchedule
from paceline.predictor.schedule.pipeline_closed_form import EqualBlocks
from paceline.predictor.search.exposed_comm import exposed_tail
from paceline.predictor.search.no_pipeline import unpiped_seconds
from paceline.predictor.search.pipeline_plans import by_stage, pipelines, through_seconds
from paceline.predictor.search.plan_grid import PlanGrid


def step_seconds(grids: Sequence[PlanGrid], schedule: PipelineSchedule) -> list[Array]:
    """Seconds per step of each grid, by degrees, micro-batch, recomputation and ZeRO stage."""
    own = [pipelines(grid) for grid in grids]
    through = through_seconds(own, schedule)
    return [_step_seconds(*each) for each in zip(grids, own, through, strict=True)]


def _step_seconds(grid: PlanGrid, own: EqualBlocks, through: Array) -> Array:
    trained = np.full((1, 1, 1, 1), grid.whole.trainable_parameters)
    unpiped = unpiped_seconds(grid, _overhead(grid), _update(grid, trained))
    supply = grid.costs.input_seconds + grid.copy_seconds
    piped = np.maximum(_pipelined(grid, own, through), supply)
    return np.where(grid.pp > 1, piped, unpiped)


def _pipelined(grid: PlanGrid, own: EqualBlocks, through: Array) -> Array:
    """All micro-batches through all stages; the first or the last stage ends last."""
    back = own.first.backward + (grid.pp - 2.0) * own.middle.backward
    last_ends = through - by_stage(back + (grid.pp - 1.0) * grid.hop_seconds)
    tails = exposed_tail(grid)
    through, last_ends = through + tails.first_delay, last_ends + tails.last_delay
    sent = [through + tails.first, last_ends + tails.last]
    tied = grid.tied_seconds
    together = np.maximum(*sent) + tied
    blocks = len(grid.parts) / grid.pp - 1.0
    # The framework's own time passes on the first stage while gradients travel.
    ready = [
        np.maximum(np.where(tied > 0, together, own_end), busy)
        for own_end, busy in zip(sent, (through + _overhead(grid), last_ends), strict=True)
    ]
    ends = [
        end
        + _update(grid, part.trainable_parameters + blocks * grid.middle.trainable_parameters)
        + _weights(grid, part.weight_bytes + blocks * grid.middle.weight_bytes)
        for end, part in zip(ready, (grid.first, grid.last), strict=True)
    ]
    return np.asarray(np.maximum(*ends))


def _overhead(grid: PlanGrid) -> Array:
    """Framework overhead per step."""
    framework = grid.job.framework
    tensors = sum(len(part.profile.tensors) for part in grid.table.parts)
    own = [
        framework.overhead_seconds(tensors // int(pp), int(dp))
        for pp, dp in zip(grid.degrees.pp, grid.degrees.dp, strict=True)
    ]
    return grid.by_degrees(np.array(own))


def _update(grid: PlanGrid, parameters: Array) -> Array:
    """The optimizer's update of a stage, or of a shard of it."""
    whole = grid.table.whole
    moved = update_traffic_bytes(
        whole.workload.optimizer, whole.precision, whole.plan.optimizer_state
    )
    shards = np.where(grid.zero >= 1, grid.dp, 1.0)
    device = whole.cluster.device
    return np.asarray(update_seconds(parameters / shards, moved, device, grid.table.efficiency))


def _weights(grid: PlanGrid, size: Array | float) -> Array:
    """All-gather of weights after a sharded update (stages 1 and 2)."""
    gathers = (grid.zero >= 1) & (grid.zero <= 2) & (grid.dp > 1)
    return np.where(gathers, grid.exchange.gather(size), 0.0)
