"""How far a measured throughput may lie from a predicted one: the one rule for all intervals."""

import math
from dataclasses import dataclass

from paceline.predictor.fitted.circumstances import kind_of, width_of
from paceline.predictor.fitted.intervals import BASELINE, COLD
from paceline.predictor.fitted.tables import fitted
from paceline.predictor.prepared import PreparedStep

NORMAL_QUANTILE = 1.645
"""Standard errors on each side of a 90 % interval."""
SMALLEST_LAUNCH_VARIATION = 0.02
"""Launches of one job differ by a few per cent even on a quiet machine (shared hosts more)."""
MODEL_ERROR_HERE = 0.03
"""Standard error of a step put together from what was measured on the same machine: see
benchmarks/loop_accuracy.py."""
MODEL_ERROR_ELSEWHERE = 0.06
"""The same where the network is taken from the catalogue instead of measured: a judgement, not
a measurement, until such a network has been measured and calibrated."""


@dataclass(frozen=True, slots=True)
class Interval:
    """Factors on a predicted throughput that bound the measured one with 90 % probability.

    ``relative_error`` is the standard error of the logarithm whose interval is as wide.
    """

    low: float
    high: float
    relative_error: float

    @classmethod
    def symmetric(cls, relative_error: float) -> "Interval":
        """Errors that lean to neither side."""
        spread = math.exp(NORMAL_QUANTILE * relative_error)
        return cls(1.0 / spread, spread, relative_error)


def launch_error(variation: float, launches: int) -> float:
    """Relative error of one more launch as predicted from the mean of so many.

    ``variation`` is their coefficient of variation; what one launch cannot tell is assumed.
    """
    known = variation if launches > 1 else 0.0
    return max(SMALLEST_LAUNCH_VARIATION, known) * math.sqrt(1.0 + 1.0 / launches)


def interval(prepared: PreparedStep, added_share: float) -> Interval:
    """The interval of a prepared step of which ``added_share`` is not one device's arithmetic.

    From launches on this machine: their variation, and the error of putting them together.
    Otherwise the errors of the predictor on published measurements: on those whose time on one
    device was known if it is known here, else on those of the same kind of samples and width of
    numbers.
    """
    evidence = prepared.evidence
    beside = prepared.colocated
    launches = evidence.alone_error if beside is None else beside.relative_error
    if launches is not None:
        measured = prepared.exchange is None or (prepared.plan.shard_degree in evidence.all_reduce)
        model = MODEL_ERROR_HERE if measured else MODEL_ERROR_ELSEWHERE
        return Interval.symmetric(math.hypot(launches, model))
    mode = BASELINE if evidence.knows_work else COLD
    kind, width = kind_of(prepared.workload), width_of(prepared.workload)
    rule = fitted().intervals.plain_rule(mode, kind, width)
    return Interval(*rule.bounds(1.0, added_share), rule.standard_error(added_share))
