"""Step times of all plans of a setting: the scheduler's steps in closed form, on arrays."""

import numpy as np

from paceline.plan.pipeline import pipeline_seconds
from paceline.plan.plan import PipelineSchedule
from paceline.predict.compute import update_seconds
from paceline.predict.search.gradient_tails import pipeline_tails, replica_tails
from paceline.predict.search.layer_table import Array, Sums
from paceline.predict.search.setting import Setting
from paceline.predict.search.sharded_units import fully_sharded_seconds
from paceline.predict.update import update_traffic_bytes
from paceline.workload.precision import precision


def step_seconds(setting: Setting) -> Array:
    """Seconds per step by degrees, micro-batch, recomputation and shard stage."""
    seconds = np.where(setting.pp > 1, _pipelined(setting), _unpiped(setting))
    costs = setting.case.costs
    samples = setting.global_batch / setting.dp / setting.table.replica.workload.batch
    supply = costs.input_seconds + costs.copy_seconds * samples
    if costs.input_overlapped:
        return np.asarray(np.maximum(seconds, supply))
    return np.asarray(np.where(setting.pp > 1, np.maximum(seconds, supply), seconds + supply))


def _pipelined(setting: Setting) -> Array:
    """All micro-batches through all stages; the first stage ends last."""
    middles = setting.blocks_per_chunk - 1.0
    first = _chunk(setting, setting.first, middles)
    inner = _chunk(setting, setting.middle, middles)
    last = _chunk(setting, setting.last, middles)
    further = setting.interleave - 1.0
    stages = [chunk[0] + chunk[1] + further * (inner[0] + inner[1]) for chunk in (first, last)]
    middle_stage = setting.interleave * (inner[0] + inner[1])
    longest = np.maximum.reduce([*stages, np.where(setting.pp > 2, middle_stage, 0.0)])
    total = stages[0] + stages[1] + (setting.pp - 2.0) * middle_stage
    through = pipeline_seconds(
        longest,
        total,
        setting.hop_seconds,
        setting.pp,
        setting.micro_batches,
        setting.interleave,
        setting.case.plan.pipeline is PipelineSchedule.GPIPE,
    )
    blocks = len(setting.parts) / setting.pp - 1.0
    ends = [
        _update(setting, own.parameters + blocks * setting.middle.parameters)
        + _weights(setting, own.weight_bytes + blocks * setting.middle.weight_bytes)
        for own in (setting.first, setting.last)
    ]
    after = np.where(setting.tied_seconds > 0, np.maximum(*ends), ends[0])
    # The framework's own time passes while gradients travel.
    messages = pipeline_tails(setting) + setting.tied_seconds
    return through + np.maximum(messages, _overhead(setting)) + after


def _chunk(setting: Setting, own: Sums, middles: Array) -> tuple[Array, Array]:
    """Forward and backward of a chunk: a block of its own and further middle ones."""
    middle, factor = setting.middle, setting.slowest_factor
    forward, backward = (
        factor * (setting.by_micro_batch(a) + middles * setting.by_micro_batch(b))
        for a, b in ((own.forward, middle.forward), (own.backward, middle.backward))
    )
    forward_exchange, backward_exchange = (
        setting.by_micro_batch(a) + middles * setting.by_micro_batch(b)
        for a, b in (
            (own.forward_exchange, middle.forward_exchange),
            (own.backward_exchange, middle.backward_exchange),
        )
    )
    gather = setting.exchange.gather(own.weight_bytes + middles * middle.weight_bytes)
    scatter = setting.exchange.scatter(own.gradient_bytes + middles * middle.gradient_bytes)
    sharded = (setting.zero == 3) & (setting.dp > 1)
    forward = np.where(sharded, np.maximum(forward, gather), forward)
    backward = np.where(sharded, np.maximum(backward, gather + scatter), backward)
    return forward + forward_exchange, backward + backward_exchange


def _unpiped(setting: Setting) -> Array:
    """Micro-batches one after the other, gradients under or after the last backward."""
    whole, factor = setting.whole, setting.slowest_factor
    forward = factor * setting.by_micro_batch(whole.forward) + setting.by_micro_batch(
        whole.forward_exchange
    )
    backward = factor * setting.by_micro_batch(whole.backward) + setting.by_micro_batch(
        whole.backward_exchange
    )
    several = setting.dp > 1
    alone = setting.micro_batches * (forward + backward)
    each = setting.exchange.scatter(whole.gradient_bytes)
    earlier = setting.micro_batches - 1.0
    # With sharded gradients every micro-batch scatters its own, beside the next one.
    queued = np.where(
        (setting.zero == 2) & (earlier > 0),
        np.maximum(each + (earlier - 1.0) * (each - forward - backward), each) - forward,
        0.0,
    )
    tails = replica_tails(setting, np.maximum(queued, 0.0))
    overhead = _overhead(setting)
    unsharded = overhead + alone + tails + _weights(setting, whole.weight_bytes)
    seconds = np.where(
        (setting.zero == 3) & several, fully_sharded_seconds(setting, overhead), unsharded
    )
    return seconds + _update(setting, np.full_like(alone, whole.parameters))


def _overhead(setting: Setting) -> Array:
    """The framework's own time per step."""
    framework = setting.case.framework
    tensors = sum(len(part.profile.tensors) for part in setting.table.parts)
    own = [
        framework.overhead_seconds(tensors // int(pp), int(dp))
        for pp, dp in zip(setting.degrees.pp, setting.degrees.dp, strict=True)
    ]
    return setting.by_degrees(np.array(own))


def _update(setting: Setting, parameters: Array) -> Array:
    """The optimiser's update of a stage, or of a shard of it."""
    workload = setting.table.replica.workload
    moved = update_traffic_bytes(workload.optimiser, precision(workload.precision))
    shards = np.where(setting.zero >= 1, setting.dp, 1.0)
    device = setting.table.replica.cluster.device
    return np.asarray(
        update_seconds(parameters / shards, moved, device, setting.table.replica.efficiency)
    )


def _weights(setting: Setting, size: Array | float) -> Array:
    """All-gather of weights whose update was shared out (stages 1 and 2)."""
    gathers = (setting.zero >= 1) & (setting.zero <= 2) & (setting.dp > 1)
    return np.where(gathers, setting.exchange.gather(size), 0.0)
