"""Interval rules from the errors on rows that were held out (split conformal prediction)."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from paceline.analyse.validation.cases import Mode, cases
from paceline.analyse.validation.forecast import Skipped
from paceline.analyse.validation.jobs import job_of
from paceline.analyse.validation.measurement import Configuration, Measurement
from paceline.analyse.validation.parts import StepTaker
from paceline.analyse.validation.product import PacelineModel
from paceline.errors import PacelineError
from paceline.predict.fitted.effects import Effects
from paceline.predict.fitted.intervals import (
    BASELINE,
    COLD,
    FAR,
    NEAR,
    PLAIN,
    SAME,
    IntervalRule,
    Intervals,
)
from paceline.predict.fitted.scaling import PREDICTOR_ALONE
from paceline.predict.fitted.tables import HeldOut

FloatArray = npt.NDArray[np.float64]
_LOW, _HIGH = 0.05, 0.95
_LEAST_FLOOR = 0.005
_DIGITS = 4
_MODES = {BASELINE: Mode.BASELINE, COLD: Mode.COLD}


@dataclass(frozen=True, slots=True)
class _Error:
    """Logarithm of measured over predicted throughput, and what it may depend on."""

    residual: float
    share: float
    distance: str


def fitted_intervals(
    measurements: Sequence[Measurement], held_out: HeldOut, taker: StepTaker
) -> Intervals:
    """Rules by distance: without its group for what stays near, without its source for far."""
    rules = {}
    for name, mode in _MODES.items():
        near = _errors(measurements, mode, lambda each: held_out.without_group(each.group), taker)
        far = _errors(measurements, mode, lambda each: held_out.without_family(each.family), taker)
        rules[name] = {
            distance: _rule([error for error in errors if error.distance == distance])
            for distance, errors in ((SAME, near), (NEAR, near), (FAR, far))
            if any(error.distance == distance for error in errors)
        }
        rules[name][PLAIN] = _rule(_errors(measurements, mode, lambda each: PREDICTOR_ALONE, taker))
    return Intervals(rules)


def _errors(
    measurements: Sequence[Measurement],
    mode: Mode,
    effects_for: Callable[[Configuration], Effects | None],
    taker: StepTaker,
) -> list[_Error]:
    def known(configuration: Configuration) -> Effects:
        effects = effects_for(configuration)
        assert effects is not None
        return effects

    model = PacelineModel(known, None, taker)
    errors = []
    for case in cases(measurements, mode):
        if case.left_out:
            continue
        configuration = case.measurement.configuration
        job = job_of(configuration)
        try:
            step = model.step(configuration, job, case.baseline)
        except PacelineError:
            continue
        if isinstance(step, Skipped):
            continue
        measured = case.measurement.step_seconds * job.units_per_sample
        errors.append(_Error(math.log(step.seconds / measured), step.added_share, step.distance))
    return errors


def _rule(errors: Sequence[_Error]) -> IntervalRule:
    residuals = np.array([error.residual for error in errors])
    shares = np.array([error.share for error in errors])
    floor, slope = _spread(np.abs(residuals), shares)
    scaled = residuals / (floor + slope * shares)
    low, high = np.quantile(scaled, [_LOW, _HIGH])
    return IntervalRule(
        round(floor, _DIGITS),
        round(slope, _DIGITS),
        round(float(low), _DIGITS),
        round(float(high), _DIGITS),
        len(errors),
    )


def _spread(sizes: FloatArray, shares: FloatArray) -> tuple[float, float]:
    """Mean size of an error as ``floor + slope x share``, neither below zero."""
    columns = np.stack([np.ones_like(shares), shares], axis=1)
    floor, slope = np.linalg.lstsq(columns, sizes, rcond=None)[0]
    if slope < 0:
        floor, slope = sizes.mean(), 0.0
    if floor < _LEAST_FLOOR:
        floor = _LEAST_FLOOR
        slope = max(0.0, float(((sizes - floor) * shares).sum() / max(1e-12, (shares**2).sum())))
    return float(floor), float(slope)
