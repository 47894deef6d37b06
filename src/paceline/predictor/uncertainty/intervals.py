"""The 90 % interval of predictions: one rule for all of them."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from paceline.constants import number
from paceline.predictor.plan.plan_choices import ContextForm
from paceline.predictor.prediction_inputs import ModelledStep
from paceline.predictor.schedule.timeline import Timeline
from paceline.predictor.uncertainty.applied_corrections import slowest_factor
from paceline.predictor.uncertainty.correction_model import (
    COLD,
    KNOWN_WORK,
    ErrorRule,
    FittedCorrections,
)
from paceline.predictor.uncertainty.measured_scale import corrected_timeline
from paceline.predictor.uncertainty.quantities import (
    BANDWIDTH,
    COMPUTING,
    SCALING,
    SMALL_MOVE,
    UNHIDDEN,
    VARIATION,
)
from paceline.predictor.uncertainty.step_corrections import StepCorrections

NORMAL_QUANTILE = 1.645
"""Standard errors on each side of a 90 % interval."""


@dataclass(frozen=True, slots=True)
class ThroughputInterval:
    """Factors on a predicted throughput that bound the measured one with 90 % probability.

    ``relative_error`` is the standard error of the logarithm whose interval is as wide.
    """

    low: float
    high: float
    relative_error: float

    @classmethod
    def symmetric(cls, relative_error: float) -> "ThroughputInterval":
        """Interval of symmetric errors on the log scale."""
        spread = math.exp(NORMAL_QUANTILE * relative_error)
        return cls(1.0 / spread, spread, relative_error)

    @classmethod
    def ruled(cls, rule: ErrorRule, variance: float) -> "ThroughputInterval":
        """Interval of a rule of residual errors plus the ``variance`` of the quantities."""
        deviation = math.sqrt(rule.noise**2 + variance)
        return cls(math.exp(rule.low * deviation), math.exp(rule.high * deviation), deviation)


def launch_error(variation: float, launches: int) -> float:
    """Relative error of one more launch predicted from the mean of ``launches``.

    ``variation`` is their coefficient of variation; for a single launch a prior is used.
    """
    known = variation if launches > 1 else 0.0
    least = number("spread.launches.smallest_variation")
    # Prediction interval of a new launch: its own variance plus that of the mean.
    return max(least, known) * math.sqrt(1.0 + 1.0 / launches)


def combination_error(*, here: bool) -> float:
    """Standard error of combining measured layers, contention and all-reduce into a step.

    ``here``: all parts are measured on this machine; else over a network of the catalogue.
    """
    return number("spread.model_error.here" if here else "spread.model_error.elsewhere")


def interval(timeline: Timeline, reference: ModelledStep | None) -> ThroughputInterval:
    """Stage 6, interval: the 90 % interval of a scheduled step.

    With launches on this machine: their variation and the error of combining them. Otherwise from
    the fitted corrections: the variances of all quantities propagate to the step (delta method)
    and add to the residual noise. ``reference`` is the measured step that sets the scale.
    """
    job, colocated = timeline.step.job, timeline.corrections.colocated
    evidence = job.evidence
    launches = evidence.alone_error if colocated is None else colocated.relative_error
    # Launches on this machine need no fitted correction: their own variation is known.
    if launches is not None:
        measured = timeline.gradients is None or job.plan.holders in evidence.all_reduce
        together = math.hypot(launches, combination_error(here=measured), division_error(timeline))
        return ThroughputInterval.symmetric(together)
    # CPUs are not among the published measurements (data/constants/spread.toml).
    if job.fitted is None:
        unfitted = math.hypot(number("spread.model_error.unfitted"), division_error(timeline))
        return ThroughputInterval.symmetric(unfitted)
    rule = job.fitted.rule(KNOWN_WORK if evidence.knows_work else COLD)
    variance = correction_variance(timeline, job.fitted, reference)
    return ThroughputInterval.ruled(rule, variance + division_error(timeline) ** 2)


def division_error(timeline: Timeline) -> float:
    """Standard error of the step from the priors of context and expert parallelism, and of input.

    Each prior is weighted by the share of the step that it multiplies.
    """
    parts = timeline.step.parts
    plan, error = parts.plan, 0.0
    if plan.assumes_expert_load:
        share = _share(timeline, [part.is_expert for part in parts.kinds])
        error = share * number("parallelism.experts.spread")
    if plan.cp > 1 and parts.cp_impl is not ContextForm.ULYSSES:
        share = _share(timeline, [part.context is not None for part in parts.kinds])
        error = math.hypot(error, share * number("parallelism.context.spread"))
    if reads_too_fast(timeline):
        error = math.hypot(error, number("spread.input.recommenders"))
    return error


def reads_too_fast(timeline: Timeline) -> bool:
    """Whether reading input may limit the step: recommenders compute little for each sample."""
    job = timeline.step.job
    known = job.input_seconds > 0 or job.evidence.input_seconds is not None
    if known or not job.workload.profile.has_sparse_gradients:
        return False
    return samples_read_per_second(timeline) > number("spread.input.samples_per_second")


def samples_read_per_second(timeline: Timeline) -> float:
    """Samples that each node must read per second."""
    job = timeline.step.job
    batch = job.workload.batch * job.plan.dp / job.cluster.nodes
    return batch / timeline.seconds


def _share(timeline: Timeline, chosen: Sequence[bool]) -> float:
    """Share of some kinds of layer in a step, including their messages."""
    parts, times = timeline.step.parts, timeline.times
    each = parts.total(np.where(chosen, times.whole_forward + times.whole_backward, 0.0))
    return min(1.0, each * parts.micro_batches / parts.plan.pp / timeline.seconds)


def correction_variance(
    timeline: Timeline, fitted: FittedCorrections, reference: ModelledStep | None
) -> float:
    """Variance of the log step from the variances of the quantities (delta method).

    Each quantity is moved a little and the change is scaled to its standard deviation, as in the
    calibration of intervals on held-out rows. Pipelines take long to schedule, so only their
    computing is considered. Jitter only adds seconds and needs no schedule.
    """
    step, applied = timeline.step, timeline.corrections
    variance = 0.0 if step.job.evidence.knows_work else fitted.variance(COMPUTING.name)
    if step.job.plan.pp > 1 or step.job.plan.devices == 1:
        return variance

    def seconds_of(corrections: StepCorrections) -> float:
        if corrections is applied.step:
            return timeline.seconds
        return corrected_timeline(step, corrections, reference).seconds

    def slowest_of(corrections: StepCorrections) -> float:
        return slowest_factor(step.job, corrections)

    return variance + float(scaling_variance(fitted, applied.step, seconds_of, slowest_of))


def scaling_variance(
    fitted: FittedCorrections,
    applied: StepCorrections,
    seconds_of: Callable[[StepCorrections], Any],
    slowest_of: Callable[[StepCorrections], Any],
) -> Any:
    """Variance of the log step from messages and jitter, of one or many steps.

    ``seconds_of`` gives steps under other corrections, ``slowest_of`` the computing time of the
    slowest device over the mean.
    """
    moved = {each.name: fitted.moved(each.name, SMALL_MOVE) for each in SCALING}
    now = seconds_of(applied)
    # Jitter lengthens only the computing part of a step.
    computing = number("spread.step.computing_share")
    slower = slowest_of(moved[VARIATION.name]) / slowest_of(applied) - 1.0
    growth = {
        VARIATION.name: np.log1p(slower * computing),
        **{each.name: np.log(seconds_of(moved[each.name]) / now) for each in (UNHIDDEN, BANDWIDTH)},
    }
    # Quantities are fitted as independent, so their contributions add.
    return sum((slope / SMALL_MOVE) ** 2 * fitted.variance(name) for name, slope in growth.items())
