"""Memory of all plans of a grid on their fullest device."""

from operator import attrgetter

import numpy as np

from paceline.predictor.kernels.layer_arrays import Array
from paceline.predictor.memory.allocator_lag import released_to_fit, unreleased_bytes
from paceline.predictor.memory.memory_parts import (
    buffer_bytes,
    micro_batches_held,
    optimizer_bytes_per_parameter,
    sharded_bytes,
)
from paceline.predictor.memory.peak_memory import allocator_bytes, largest_tensor
from paceline.predictor.plan.plan_choices import PipelineSchedule, Recompute
from paceline.predictor.search.layer_table import MODES
from paceline.predictor.search.plan_grid import PlanGrid


def memory_bytes(grid: PlanGrid) -> Array:
    """Bytes on the stage that needs most: the first, the second or the last of a pipeline."""
    first, middle, last, whole = grid.first, grid.middle, grid.last, grid.whole
    alone = grid.pp == 1
    inner = np.asarray(len(grid.parts) / grid.pp - 1.0)
    largest = _largest_block(grid)
    totals = []
    for stage, own in ((0, first), (1, middle), (-1, last)):
        position = np.minimum(grid.pp - 1.0, stage) if stage >= 0 else grid.pp - 1.0
        held, trained = (
            np.where(alone, of(whole), of(own) + inner * of(middle))
            for of in (attrgetter("parameters"), attrgetter("trainable_parameters"))
        )
        kept, made_whole, flops = (
            np.where(
                alone,
                grid.by_micro_batch(of(whole)),
                grid.by_micro_batch(of(own)) + inner * grid.by_micro_batch(of(middle)),
            )
            for of in map(attrgetter, ("kept_bytes", "whole_bytes", "forward_flops"))
        )
        waiting = _waiting(grid, made_whole, flops)
        others = _stage_bytes(grid, position, held, trained, kept, largest)
        capacity = grid.table.whole.cluster.device.memory_bytes
        totals.append(others + released_to_fit(waiting, others, capacity))
    return np.asarray(np.maximum.reduce(totals))


def _waiting(grid: PlanGrid, whole: Array, flops: Array) -> Array:
    """Unreleased gathered tensors, including allocator fragmentation."""
    network = grid.table.whole
    if not network.framework.whole_tensors_wait:
        return np.zeros(1)
    largest = grid.by_micro_batch(grid.table.largest_whole_bytes)
    size = unreleased_bytes(
        network, whole, largest, flops, grid.table.tp, grid.pp, grid.micro_batches
    )
    return np.asarray(size + allocator_bytes(size, network.framework))


def _stage_bytes(
    grid: PlanGrid,
    stage: Array,
    parameters: Array,
    trained: Array,
    kept: Array,
    largest_block: float,
) -> Array:
    network = grid.table.whole
    workload, widths = network.workload, network.precision
    width = network.plan.optimizer_state
    state = trained * optimizer_bytes_per_parameter(workload.optimizer, widths, width)
    gradients = trained * widths.gradient_bytes
    kept_width = network.framework.gradient_bytes_kept(workload.precision)
    short = kept_width - widths.gradient_bytes
    zero, shards = grid.zero, grid.dp
    synchronisation = grid.table.whole.synchronisation
    buffers = buffer_bytes(
        gradients,
        synchronisation.bucket_bytes,
        largest_block,
        zero,
        copies_gradients=grid.job.framework.copies_gradients(synchronisation),
    )
    gpipe = grid.job.plan.pipeline is PipelineSchedule.GPIPE
    held = micro_batches_held(
        stage,
        grid.pp,
        np.where(grid.pp > 1, grid.micro_batches, 1.0),
        grid.interleave,
        gpipe,
    )
    full = np.array([mode is Recompute.FULL for mode in MODES]).reshape(1, 1, -1, 1)
    passing = np.where(full, grid.by_micro_batch(grid.table.working_bytes), 0.0)
    scores = grid.by_micro_batch(grid.table.loss_working_bytes)
    passing = np.where(stage == grid.pp - 1.0, np.maximum(passing, scores), passing)
    activations = kept * held + passing
    return np.asarray(
        sharded_bytes(parameters * widths.weight_bytes, 3, zero, shards)
        + sharded_bytes(trained * kept_width, 2, zero, shards)
        + sharded_bytes(state, 1, zero, shards)
        + activations
        + allocator_bytes(activations, network.framework)
        + np.where(shards == 1, 0.0, buffers)
        + grid.table.placeholder_bytes
        + short * largest_tensor(part.profile for part in grid.table.parts)
    )


def _largest_block(grid: PlanGrid) -> float:
    """Weights of the largest block, whole."""
    return max(grid.table.sums(range(part.first, part.last)).weight_bytes for part in grid.parts)
