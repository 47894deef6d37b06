"""Memory of all plans of a setting on their fullest device."""

from operator import attrgetter

import numpy as np

from paceline.plan.choices import PipelineSchedule, Recompute
from paceline.plan.memory import (
    buffer_bytes,
    micro_batches_held,
    optimiser_bytes_per_parameter,
    sharded_bytes,
)
from paceline.predictor.layer_arrays import Array
from paceline.predictor.plan_memory import allocator_bytes, largest_tensor
from paceline.predictor.search.layer_table import MODES
from paceline.predictor.search.setting import Setting
from paceline.predictor.waiting import waiting_bytes


def memory_bytes(setting: Setting) -> Array:
    """Bytes on the stage that needs most: the first, the second or the last of a pipeline."""
    first, middle, last, whole = setting.first, setting.middle, setting.last, setting.whole
    alone = setting.pp == 1
    inner = np.asarray(len(setting.parts) / setting.pp - 1.0)
    largest = _largest_block(setting)
    totals = []
    for stage, own in ((0, first), (1, middle), (-1, last)):
        place = np.minimum(setting.pp - 1.0, stage) if stage >= 0 else setting.pp - 1.0
        held, trained = (
            np.where(alone, of(whole), of(own) + inner * of(middle))
            for of in (attrgetter("parameters"), attrgetter("trainable_parameters"))
        )
        kept, made_whole, flops = (
            np.where(
                alone,
                setting.by_micro_batch(of(whole)),
                setting.by_micro_batch(of(own)) + inner * setting.by_micro_batch(of(middle)),
            )
            for of in map(attrgetter, ("kept_bytes", "whole_bytes", "forward_flops"))
        )
        waiting = _waiting(setting, made_whole, flops)
        totals.append(waiting + _stage_bytes(setting, place, held, trained, kept, largest))
    return np.asarray(np.maximum.reduce(totals))


def _waiting(setting: Setting, whole: Array, flops: Array) -> Array:
    """Memory of whole tensors that is not free yet, and what the allocator holds beside it."""
    replica = setting.table.replica
    if not replica.framework.whole_tensors_wait:
        return np.zeros(1)
    largest = setting.by_micro_batch(setting.table.largest_whole_bytes)
    size = waiting_bytes(replica, whole, largest, flops, setting.pp, setting.micro_batches)
    return np.asarray(size + allocator_bytes(size, replica.framework))


def _stage_bytes(
    setting: Setting,
    stage: Array,
    parameters: Array,
    trained: Array,
    kept: Array,
    largest_block: float,
) -> Array:
    replica = setting.table.replica
    workload, widths = replica.workload, replica.precision
    width = replica.plan.optimiser_state
    state = trained * optimiser_bytes_per_parameter(workload.optimiser, widths, width)
    gradients = trained * widths.gradient_bytes
    kept_width = replica.framework.gradient_bytes_kept(workload.precision)
    short = kept_width - widths.gradient_bytes
    zero, shards = setting.zero, setting.dp
    synchronisation = setting.case.synchronisation
    buffers = buffer_bytes(
        gradients,
        synchronisation.bucket_bytes,
        largest_block,
        zero,
        copies_gradients=setting.case.framework.copies_gradients(synchronisation),
    )
    gpipe = setting.case.plan.pipeline is PipelineSchedule.GPIPE
    held = micro_batches_held(
        stage,
        setting.pp,
        np.where(setting.pp > 1, setting.micro_batches, 1.0),
        setting.interleave,
        gpipe,
    )
    full = np.array([mode is Recompute.FULL for mode in MODES]).reshape(1, 1, -1, 1)
    passing = np.where(full, setting.by_micro_batch(setting.table.working_bytes), 0.0)
    scores = setting.by_micro_batch(setting.table.loss_working_bytes)
    passing = np.where(stage == setting.pp - 1.0, np.maximum(passing, scores), passing)
    activations = kept * held + passing
    return np.asarray(
        sharded_bytes(parameters * widths.weight_bytes, 3, zero, shards)
        + sharded_bytes(trained * kept_width, 2, zero, shards)
        + sharded_bytes(state, 1, zero, shards)
        + activations
        + allocator_bytes(activations, replica.framework)
        + np.where(shards == 1, 0.0, buffers)
        + short * largest_tensor(part.profile for part in setting.table.parts)
    )


def _largest_block(setting: Setting) -> float:
    """Weights of the largest block, whole."""
    return max(
        setting.table.sums(range(part.first, part.last)).weight_bytes for part in setting.parts
    )
