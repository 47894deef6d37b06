"""Step times of all plans of a setting: the scheduler's steps in closed form, on arrays."""

from collections.abc import Sequence

import numpy as np

from paceline.plan.choices import PipelineSchedule
from paceline.plan.pipeline_times import EqualBlocks
from paceline.predictor.around_layers import update_traffic_bytes
from paceline.predictor.compute import update_seconds
from paceline.predictor.layer_arrays import Array
from paceline.predictor.search.gradient_tails import pipeline_tails
from paceline.predictor.search.pipelines import by_stage, pipelines, through_seconds
from paceline.predictor.search.setting import Setting
from paceline.predictor.search.unpiped import unpiped_seconds


def step_seconds(settings: Sequence[Setting], schedule: PipelineSchedule) -> list[Array]:
    """Seconds per step of each setting, by degrees, micro-batch, recomputation and shard stage."""
    own = [pipelines(setting) for setting in settings]
    through = through_seconds(own, schedule)
    return [_step_seconds(*each) for each in zip(settings, own, through, strict=True)]


def _step_seconds(setting: Setting, own: EqualBlocks, through: Array) -> Array:
    trained = np.full((1, 1, 1, 1), setting.whole.trainable_parameters)
    unpiped = unpiped_seconds(setting, _overhead(setting), _update(setting, trained))
    supply = setting.case.costs.input_seconds + setting.copy_seconds
    piped = np.maximum(_pipelined(setting, own, through), supply)
    return np.where(setting.pp > 1, piped, unpiped)


def _pipelined(setting: Setting, own: EqualBlocks, through: Array) -> Array:
    """All micro-batches through all stages; the first or the last stage ends last."""
    back = own.first.backward + (setting.pp - 2.0) * own.middle.backward
    last_ends = through - by_stage(back + (setting.pp - 1.0) * setting.hop_seconds)
    tails = pipeline_tails(setting)
    through, last_ends = through + tails.first_delay, last_ends + tails.last_delay
    sent = [through + tails.first, last_ends + tails.last]
    tied = setting.tied_seconds
    together = np.maximum(*sent) + tied
    blocks = len(setting.parts) / setting.pp - 1.0
    # The framework's own time passes on the first stage while gradients travel.
    ready = [
        np.maximum(np.where(tied > 0, together, own_end), busy)
        for own_end, busy in zip(sent, (through + _overhead(setting), last_ends), strict=True)
    ]
    ends = [
        end
        + _update(setting, part.trainable_parameters + blocks * setting.middle.trainable_parameters)
        + _weights(setting, part.weight_bytes + blocks * setting.middle.weight_bytes)
        for end, part in zip(ready, (setting.first, setting.last), strict=True)
    ]
    return np.asarray(np.maximum(*ends))


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
    replica = setting.table.replica
    moved = update_traffic_bytes(
        replica.workload.optimiser, replica.precision, replica.plan.optimiser_state
    )
    shards = np.where(setting.zero >= 1, setting.dp, 1.0)
    device = replica.cluster.device
    return np.asarray(
        update_seconds(parameters / shards, moved, device, setting.table.replica.efficiency)
    )


def _weights(setting: Setting, size: Array | float) -> Array:
    """All-gather of weights whose update was shared out (stages 1 and 2)."""
    gathers = (setting.zero >= 1) & (setting.zero <= 2) & (setting.dp > 1)
    return np.where(gathers, setting.exchange.gather(size), 0.0)
