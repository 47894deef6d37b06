"""The factor on layer times that reproduces a measured step."""

from collections.abc import Callable
from dataclasses import replace

from paceline.constants import number
from paceline.errors import InputError
from paceline.predictor.prediction_inputs import ModelledStep, PredictionInputs
from paceline.predictor.schedule.device_times import DeviceTimes, device_times
from paceline.predictor.schedule.timeline import Timeline, schedule
from paceline.predictor.uncertainty.applied_corrections import apply_corrections
from paceline.predictor.uncertainty.step_corrections import NO_CORRECTIONS, StepCorrections
from paceline.units import format_seconds

_LEAST_COMPUTING = "spread.step.least_computing"
_SCALE_ERROR = 1e-5
_MOST_TRIALS = 60


def alone_job(job: PredictionInputs) -> PredictionInputs:
    """The same work and evidence on one device, uncorrected."""
    return PredictionInputs(
        job.workload,
        job.cluster.shaped(1, 1),
        job.plan.on_one_device(),
        job.framework,
        job.efficiency,
        replace(job.evidence, spread=None, baseline=None),
        scale=1.0,
    )


def measured_scale(
    job: PredictionInputs, reference: ModelledStep | None, corrections: StepCorrections
) -> float:
    """Factor on all layer times that reproduces the measured step of ``reference``.

    ``reference`` is the step of one device if ``alone_seconds`` is measured, else the baseline.
    """
    if job.scale is not None or reference is None:
        return 1.0 if job.scale is None else job.scale
    if job.evidence.alone_seconds is not None:
        return scale_alone(reference, job.evidence.alone_seconds)
    assert job.evidence.baseline is not None
    return scale_of_baseline(reference, corrections, job.evidence.baseline.seconds)


def corrected_timeline(
    step: ModelledStep, corrections: StepCorrections, reference: ModelledStep | None = None
) -> Timeline:
    """Stages 4 and 5: a modelled step scheduled under corrections."""
    scale = measured_scale(step.job, reference, corrections)
    return schedule(step, apply_corrections(step.job, corrections, scale))


def scale_alone(alone: ModelledStep, seconds: float) -> float:
    """The factor on layer times for which one device alone takes ``seconds``."""
    timeline = schedule(alone, apply_corrections(alone.job, NO_CORRECTIONS))
    work = _work(alone, timeline.times)
    rest = timeline.seconds - work
    if seconds <= rest or work <= 0:
        raise InputError(
            f"a step of {format_seconds(seconds)} is shorter than the framework overhead "
            f"alone ({format_seconds(rest)})",
            "give the seconds per step of one device",
        )
    return (seconds - rest) / work


def scale_of_baseline(step: ModelledStep, corrections: StepCorrections, seconds: float) -> float:
    """The factor on layer times for which a measured step takes ``seconds``.

    On one device the step is linear in the factor. On several devices it increases monotonically,
    so the root is bracketed.
    """
    plan = step.job.plan
    modelled = device_times(step.parts, step.layers, step.communication.within)
    work = _work(step, modelled) / plan.pp
    if work <= 0:
        raise InputError(
            "the baseline job has no computing to scale", "give the model that it trains"
        )

    def scaled(scale: float) -> float:
        job = replace(step.job, scale=scale)
        return schedule(replace(step, job=job), apply_corrections(job, corrections, scale)).seconds

    if plan.devices == 1:
        rest = max(0.0, scaled(1.0) - work)
        return max(seconds - rest, number(_LEAST_COMPUTING) * seconds) / work

    def excess(scale: float) -> float:
        return scaled(scale) / seconds - 1.0

    # Exchanges under computing shrink as it grows, so only computing itself bounds the factor.
    computing = step.parts.total(modelled.forward + modelled.backward)
    low = number(_LEAST_COMPUTING) * seconds / work
    high = plan.pp * seconds / (step.parts.micro_batches * computing) * (1.0 + _SCALE_ERROR)
    return low if excess(low) >= 0 else _root(excess, low, high)


def _work(step: ModelledStep, times: DeviceTimes) -> float:
    """Computing and exposed exchanges of all micro-batches through all layers."""
    seconds = step.parts.total(times.whole_forward + times.whole_backward)
    return step.parts.micro_batches * seconds


def _root(excess: Callable[[float], float], low: float, high: float) -> float:
    """Root of ``excess`` between ``low`` and ``high`` (Illinois variant of false position)."""
    below, above, side = excess(low), max(excess(high), 0.0), 0
    for _ in range(_MOST_TRIALS):
        if above - below <= 0 or high - low <= _SCALE_ERROR * high:
            break
        middle = (low * above - high * below) / (above - below)
        value = excess(middle)
        if abs(value) <= _SCALE_ERROR:
            return middle
        if value < 0:
            low, below, above, side = middle, value, above / 2 if side < 0 else above, -1
        else:
            high, above, below, side = middle, value, below / 2 if side > 0 else below, 1
    return 0.5 * (low + high)
