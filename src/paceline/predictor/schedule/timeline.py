"""Stage 5, schedule: the corrected layers and messages of one device in time."""

from dataclasses import dataclass, replace

from paceline.predictor.kernels.copy_and_update import copy_seconds
from paceline.predictor.partition.partition import Partition
from paceline.predictor.prediction_inputs import ModelledStep, PredictionInputs
from paceline.predictor.schedule.coalesce_layers import coalesced_step
from paceline.predictor.schedule.device_step import DeviceStep
from paceline.predictor.schedule.device_times import (
    DeviceTimes,
    device_times,
    named_layers,
    with_compression,
)
from paceline.predictor.schedule.host_time import at_host_rate
from paceline.predictor.schedule.step_costs import GradientExchange, StepCosts
from paceline.predictor.uncertainty.applied_corrections import AppliedCorrections
from paceline.step import Step
from paceline.workload.blocks import blocks


@dataclass(frozen=True, eq=False)
class Timeline:
    """A scheduled step of ``seconds``.

    ``times`` are those of the slowest device, ``gradients`` the messages among replicas (None for
    one), ``updates`` the seconds of each stage's update, ``costs`` everything else.
    """

    step: ModelledStep
    corrections: AppliedCorrections
    times: DeviceTimes
    gradients: GradientExchange | None
    updates: tuple[float, ...]
    costs: StepCosts
    seconds: float

    def tasks(self) -> Step:
        """The same schedule as a list of tasks."""
        parts, plan = self.step.parts, self.step.parts.plan
        if plan.pp > 1:
            from paceline.predictor.schedule.pipeline_step import pipeline_step

            return pipeline_step(self, with_passes=True)
        whole = DeviceStep(
            named_layers(parts, self.times),
            self.gradients,
            self.costs,
            plan.zero,
            parts.weight_bytes[parts.classes.of_layer].tolist(),
            [range(unit.first, unit.last) for unit in blocks(parts.workload.graph)],
            parts.micro_batches,
        )
        return whole.tasks(plan.label)


def schedule(step: ModelledStep, corrections: AppliedCorrections) -> Timeline:
    """Schedule a step under corrections; only times are computed, tasks are listed on demand."""
    job, parts, communication = step.job, step.parts, step.communication
    times = device_times(
        parts,
        step.layers,
        communication.within,
        corrections.compute_factor,
        corrections.modelled_factor,
        corrections.step.bandwidth_factor,
    )
    times = at_host_rate(with_compression(times, parts), parts)
    updates = tuple(corrections.rest_factor * seconds for seconds in step.updates)
    timeline = Timeline(
        step,
        corrections,
        times,
        _gradients(step, corrections),
        updates,
        step_costs(job, parts, corrections, updates[0]),
        seconds=0.0,
    )
    return replace(timeline, seconds=_seconds(timeline))


def step_costs(
    job: PredictionInputs,
    parts: Partition,
    corrections: AppliedCorrections,
    update_seconds: float = 0.0,
) -> StepCosts:
    """Costs of a step besides layers and messages."""
    framework = job.framework
    library = framework.library(job.cluster.device)
    overhead = own_overhead_seconds(job)
    if job.plan.holders > 1:
        tensors = parts.total([len(part.profile.tensors) for part in parts.kinds])
        overhead += int(tensors) // job.plan.pp * framework.tensor_overhead_seconds
        overhead += corrections.step.overhead_seconds
    interference = corrections.step.interference
    exposed = job.evidence.input_seconds
    return StepCosts(
        input_seconds=job.input_seconds if exposed is None else corrections.rest_factor * exposed,
        copy_seconds=copy_seconds(parts),
        input_overlapped=framework.input_overlapped and exposed is None,
        update_seconds=update_seconds,
        message_overhead_seconds=framework.message_overhead_seconds
        + library.message_overhead_seconds,
        overhead_seconds=overhead,
        interference=library.interference if interference is None else interference,
    )


def own_overhead_seconds(job: PredictionInputs) -> float:
    """Framework overhead on one device; 0 if measured layers of a whole step contain it."""
    is_known = job.evidence.layers and job.evidence.alone_seconds is not None
    return 0.0 if is_known else job.framework.step_overhead_seconds


def _gradients(step: ModelledStep, corrections: AppliedCorrections) -> GradientExchange | None:
    """Messages among replicas; measured ones are not corrected."""
    gradients, factor = step.communication.gradients, corrections.step.bandwidth_factor
    measured = step.job.plan.holders in step.job.evidence.all_reduce
    if gradients is None or factor == 1.0 or measured:
        return gradients
    return replace(gradients, bandwidth_factor=factor)


def _seconds(timeline: Timeline) -> float:
    """Duration of the step, computed without listing its tasks."""
    parts = timeline.step.parts
    if parts.plan.pp == 1:
        short = coalesced_step(parts, timeline.times, timeline.gradients, timeline.costs)
        return short.seconds()
    from paceline.predictor.schedule.pipeline_step import pipeline_step

    return pipeline_step(timeline, with_passes=False).seconds
