"""The factor on layer times that reproduces a measured step."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from paceline.errors import InputError
from paceline.units import format_seconds

if TYPE_CHECKING:
    from paceline.predictor.step_model import StepModel

_LEAST_WORK = 0.05
"""Least share of computing in a measured baseline, whatever the model says of the rest."""
_SCALE_ERROR = 1e-5
_MOST_TRIALS = 60


def scale_alone(alone: "StepModel", seconds: float) -> float:
    """The factor on layer times for which one device alone takes ``seconds``."""
    layers = sum(x.whole_forward_seconds + x.whole_backward_seconds for x in alone.layers)
    work = alone.replica.micro_batches * layers
    rest = alone.seconds() - work
    if seconds <= rest or work <= 0:
        raise InputError(
            f"a step of {format_seconds(seconds)} is shorter than the framework overhead "
            f"alone ({format_seconds(rest)})",
            "give the seconds per step of one device",
        )
    return float((seconds - rest) / work)


def scale_of_baseline(job: "StepModel", seconds: float) -> float:
    """The factor on layer times for which ``job`` takes ``seconds``.

    On one device the step is linear in the factor. On several devices it increases monotonically,
    so the root is bracketed.
    """
    work = sum(x.whole_forward_seconds + x.whole_backward_seconds for x in job.replica.layers)
    work *= job.replica.micro_batches / job.plan.pp
    if work <= 0:
        raise InputError(
            "the baseline job has no computing to scale", "give the model that it trains"
        )
    if job.plan.devices == 1:
        rest = max(0.0, job.with_scale(1.0).seconds() - work)
        return float(max(seconds - rest, _LEAST_WORK * seconds) / work)

    def excess(scale: float) -> float:
        return job.with_scale(scale).seconds() / seconds - 1.0

    # Exchanges under computing shrink as it grows, so only computing itself bounds the factor.
    computing = sum(x.forward_seconds + x.backward_seconds for x in job.replica.layers)
    low = _LEAST_WORK * seconds / work
    high = job.plan.pp * seconds / (job.replica.micro_batches * computing) * (1.0 + _SCALE_ERROR)
    return low if excess(low) >= 0 else _root(excess, low, high)


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
