"""Where a predicted step loses time against one device that computes alone."""

from dataclasses import dataclass, replace

import numpy as np

from paceline.predictor.kernels.layer_times import layer_times
from paceline.predictor.partition.partition import partition
from paceline.predictor.prediction_inputs import ModelledStep
from paceline.predictor.schedule.device_times import DeviceTimes, device_times
from paceline.predictor.schedule.timeline import own_overhead_seconds
from paceline.predictor.uncertainty.applied_corrections import AppliedCorrections


@dataclass(frozen=True)
class StepLosses:
    """Seconds per step of the mean device.

    ``ideal`` is its share of the arithmetic without the cost of dividing it: the whole network on
    one device, divided by the devices of a replica. ``sharing`` is contention within a node,
    ``waiting`` the excess of the slowest device over the mean (jitter), ``division`` unequal or
    split work in context and expert parallelism, ``recomputing`` recomputation.
    """

    ideal: float
    sharing: float
    waiting: float
    division: float
    recomputing: float


def step_losses(step: ModelledStep, corrections: AppliedCorrections) -> StepLosses:
    """The losses of a step that its schedule does not show."""
    parts, plan = step.parts, step.parts.plan
    mean = device_times(
        parts,
        step.layers,
        step.communication.within,
        corrections.work_scale,
        corrections.modelled_factor,
    )
    updates = step.updates
    exposed_input = step.job.evidence.input_seconds or 0.0
    share = parts.micro_batches / plan.pp
    work = share * parts.total(mean.forward + mean.backward + mean.recompute)
    rest = updates[0] + exposed_input
    is_one_machine = corrections.colocated is not None and step.job.cluster.nodes == 1
    alone = sum(updates) / len(updates) + own_overhead_seconds(step.job) + exposed_input
    return StepLosses(
        ideal=_undivided_work(step, corrections, mean) + alone,
        sharing=(corrections.sharing_factor - 1.0) * (work + rest),
        waiting=(corrections.slowest_factor - 1.0)
        * corrections.sharing_factor
        * (work + rest if is_one_machine else work),
        division=share * _division(step, corrections, mean),
        recomputing=share * parts.total(mean.recompute),
    )


def _undivided_work(
    step: ModelledStep, corrections: AppliedCorrections, mean: DeviceTimes
) -> float:
    """Seconds of the whole network on one device over the devices of a replica."""
    parts, plan = step.parts, step.parts.plan
    shares = plan.tp * plan.cp * plan.pp
    work = parts.total(mean.forward + mean.backward)
    if plan.tp > 1 or plan.ep > 1 or plan.cp > 1:
        job = replace(step.job, plan=plan.undivided())
        whole = partition(
            job.workload,
            job.cluster,
            job.plan,
            job.framework,
            each_layer=bool(job.evidence.layers),
        )
        alone = layer_times(whole, job.efficiency, job.evidence.layers)
        scale, further = corrections.work_scale, corrections.modelled_factor
        factors = np.where(alone.measured, scale, scale * further)
        work = whole.total(factors * (alone.forward + alone.backward))
    return parts.micro_batches * work / shares


def _division(step: ModelledStep, corrections: AppliedCorrections, mean: DeviceTimes) -> float:
    """Seconds of one micro-batch by which layers in parts or on the busiest device take longer."""
    parts = step.parts
    if parts.plan.cp == 1 and parts.plan.ep == 1:
        return 0.0
    factor = corrections.work_scale * corrections.modelled_factor
    longer_forward = mean.forward - factor * step.layers.forward
    longer_backward = mean.backward - factor * step.layers.backward
    return parts.total(
        (1 + np.array(parts.kept.again, dtype=float)) * longer_forward + longer_backward
    )
