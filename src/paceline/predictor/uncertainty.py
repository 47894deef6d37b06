"""How far a measured throughput may lie from a predicted one: the one rule for all intervals."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from paceline.constants import number
from paceline.plan.choices import ContextForm
from paceline.predictor.corrections.model import COLD, KNOWN_WORK, ErrorRule, Taught
from paceline.predictor.corrections.quantities import (
    BANDWIDTH,
    COMPUTING,
    OVERHEAD,
    SCALING,
    SMALL_MOVE,
    UNHIDDEN,
    VARIATION,
)
from paceline.predictor.prepared import PreparedStep
from paceline.predictor.step_corrections import StepCorrections

_COMPUTING_SHARE = 0.9
"""Of a step that waits for the slowest worker, about so much is its computing."""
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
        """Errors that lean to neither side."""
        spread = math.exp(NORMAL_QUANTILE * relative_error)
        return cls(1.0 / spread, spread, relative_error)

    @classmethod
    def ruled(cls, rule: ErrorRule, variance: float) -> "ThroughputInterval":
        """Errors as a rule has them, with what is not known of the quantities (a variance)."""
        deviation = math.sqrt(rule.noise**2 + variance)
        return cls(math.exp(rule.low * deviation), math.exp(rule.high * deviation), deviation)


def launch_error(variation: float, launches: int) -> float:
    """Relative error of one more launch as predicted from the mean of so many.

    ``variation`` is their coefficient of variation; what one launch cannot tell is assumed.
    """
    known = variation if launches > 1 else 0.0
    least = number("spread.launches.smallest_variation")
    return max(least, known) * math.sqrt(1.0 + 1.0 / launches)


def combination_error(*, here: bool) -> float:
    """Standard error of a step put together from what was measured of a machine.

    ``here`` on the same machine, else over a network of the catalogue.
    """
    return number("spread.model_error.here" if here else "spread.model_error.elsewhere")


def interval(prepared: PreparedStep) -> ThroughputInterval:
    """The interval of a prepared step.

    From launches on this machine: their variation, and the error of putting them together.
    Otherwise from what published measurements leave open: every quantity is moved by its
    standard deviation, and what the step then does adds up, with the noise that remains.
    """
    evidence = prepared.evidence
    beside = prepared.colocated
    launches = evidence.alone_error if beside is None else beside.relative_error
    if launches is not None:
        measured = prepared.exchange is None or prepared.plan.holders in evidence.all_reduce
        together = math.hypot(launches, combination_error(here=measured), division_error(prepared))
        return ThroughputInterval.symmetric(together)
    if prepared.taught is None:
        untaught = math.hypot(number("spread.model_error.untaught"), division_error(prepared))
        return ThroughputInterval.symmetric(untaught)
    rule = prepared.taught.rule(KNOWN_WORK if evidence.knows_work else COLD)
    variance = taught_variance(prepared, prepared.taught) + division_error(prepared) ** 2
    return ThroughputInterval.ruled(rule, variance)


def division_error(prepared: PreparedStep) -> float:
    """What priors on dividing tokens and experts leave open, as a standard error of the step.

    Each counts with the share of the step that it multiplies.
    """
    plan, replica = prepared.plan, prepared.replica
    parts = replica.parts
    error = 0.0
    if plan.ep > 1 and plan.expert_imbalance is None:
        share = _share(prepared, [part.is_expert for part in parts])
        error = share * number("parallelism.experts.spread")
    if plan.cp > 1 and replica.context_form is not ContextForm.ULYSSES:
        share = _share(prepared, [part.context is not None for part in parts])
        error = math.hypot(error, share * number("parallelism.context.spread"))
    return error


def _share(prepared: PreparedStep, chosen: Sequence[bool]) -> float:
    """What some layers take of a step, their messages included."""
    each = sum(
        layer.whole_forward_seconds + layer.whole_backward_seconds
        for layer, counts in zip(prepared.layers, chosen, strict=True)
        if counts
    )
    replica = prepared.replica
    return min(1.0, float(each) * replica.micro_batches / replica.plan.pp / prepared.seconds())


def taught_variance(prepared: PreparedStep, taught: Taught) -> float:
    """Variance of the logarithm of the step by what is not known of the quantities.

    A quantity is moved a little and the answer scaled to its standard deviation, as rows that
    were left out are weighed when intervals are calibrated. Pipelines, which take long to
    schedule, are taken to follow their computing alone. What only adds seconds to a step (a
    second replica, waiting for the slowest) needs no schedule.
    """
    known = prepared.evidence.knows_work
    variance = 0.0 if known else taught.variance(COMPUTING.name)
    if prepared.plan.pp > 1 or prepared.plan.devices == 1:
        return variance
    scaling = scaling_variance(
        taught,
        prepared.applied,
        lambda corrections: prepared.with_corrections(corrections).seconds(),
        lambda corrections: prepared.with_corrections(corrections).slowest_factor,
    )
    return variance + float(scaling)


def scaling_variance(
    taught: Taught,
    applied: StepCorrections,
    seconds_of: Callable[[StepCorrections], Any],
    slowest_of: Callable[[StepCorrections], Any],
) -> Any:
    """What is not known of messages, waiting and overheads, of one step or an array of them.

    ``seconds_of`` gives steps under other corrections, ``slowest_of`` how much longer the slowest
    device computes than the mean one.
    """
    moved = {each.name: taught.moved(each.name, SMALL_MOVE) for each in SCALING}
    now = seconds_of(applied)
    costlier = moved[OVERHEAD.name].overhead_seconds - applied.overhead_seconds
    slower = slowest_of(moved[VARIATION.name]) / slowest_of(applied) - 1.0
    growth = {
        OVERHEAD.name: np.log1p(costlier / now),
        VARIATION.name: np.log1p(slower * _COMPUTING_SHARE),
        **{each.name: np.log(seconds_of(moved[each.name]) / now) for each in (UNHIDDEN, BANDWIDTH)},
    }
    return sum((slope / SMALL_MOVE) ** 2 * taught.variance(name) for name, slope in growth.items())
