"""Interval rules from the errors on rows that were held out (split conformal prediction)."""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from paceline.analyse.validation.cases import Mode, cases
from paceline.analyse.validation.circumstances import circumstances_of
from paceline.analyse.validation.forecast import Skipped
from paceline.analyse.validation.jobs import job_of
from paceline.analyse.validation.measurement import Configuration, Measurement
from paceline.analyse.validation.parts import StepTaker
from paceline.analyse.validation.product import PacelineModel
from paceline.errors import PacelineError
from paceline.predictor.fitted.effects import Effects
from paceline.predictor.fitted.intervals import (
    BASELINE,
    COLD,
    FAR,
    NEAR,
    PLAIN,
    SAME,
    IntervalRule,
    Intervals,
    plain_distance,
)
from paceline.predictor.fitted.scaling import PREDICTOR_ALONE
from paceline.predictor.fitted.tables import HeldOut

FloatArray = npt.NDArray[np.float64]
_LOW, _HIGH = 0.05, 0.95
_LEAST_FLOOR = 0.005
_DIGITS = 4
_FEWEST_SOURCES = 3
_MODES = {BASELINE: Mode.BASELINE, COLD: Mode.COLD}


@dataclass(frozen=True, slots=True)
class HeldOutError:
    """Logarithm of measured over predicted throughput, and what it may depend on.

    ``work`` names the kind of samples and the width of numbers, as `plain_distance` does.
    """

    residual: float
    share: float
    distance: str
    family: str
    work: str


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
        alone = predictor_errors(measurements, mode, taker)
        rules[name][PLAIN] = _rule(alone)
        if mode is Mode.COLD:
            rules[name] |= plain_rules(alone)
    return Intervals(rules)


def predictor_errors(
    measurements: Sequence[Measurement], mode: Mode, taker: StepTaker
) -> list[HeldOutError]:
    """Errors of the predictor without any fitted effect."""
    return _errors(measurements, mode, lambda each: PREDICTOR_ALONE, taker)


def plain_rules(errors: Sequence[HeldOutError]) -> dict[str, IntervalRule]:
    """Rules of the predictor alone by kind of work, where several sources measured it.

    How errors grow with the share of the step that many devices add is found on all work
    together: few sources have much of it. Sources weigh the same, however many rows they have:
    the next one is another source.
    """
    spread = _spread(errors)
    rules = {}
    for work in sorted({error.work for error in errors}):
        same = [error for error in errors if error.work == work]
        rows = Counter(error.family for error in same)
        if len(rows) >= _FEWEST_SOURCES:
            rules[work] = _rule(same, spread, [1.0 / rows[error.family] for error in same])
    return rules


def _errors(
    measurements: Sequence[Measurement],
    mode: Mode,
    effects_for: Callable[[Configuration], Effects | None],
    taker: StepTaker,
) -> list[HeldOutError]:
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
        where = circumstances_of(configuration, job)
        errors.append(
            HeldOutError(
                math.log(step.seconds / measured),
                step.added_share,
                step.distance,
                configuration.family,
                plain_distance(where.kind, where.width),
            )
        )
    return errors


def _rule(
    errors: Sequence[HeldOutError],
    spread: tuple[float, float] | None = None,
    weights: Sequence[float] | None = None,
) -> IntervalRule:
    floor, slope = spread or _spread(errors)
    scaled = np.array([error.residual / (floor + slope * error.share) for error in errors])
    if weights is None:
        low, high = np.quantile(scaled, [_LOW, _HIGH])
    else:
        low, high = _weighted_quantiles(scaled, np.array(weights))
    return IntervalRule(
        round(floor, _DIGITS),
        round(slope, _DIGITS),
        round(float(low), _DIGITS),
        round(float(high), _DIGITS),
        len(errors),
    )


def _weighted_quantiles(values: FloatArray, weights: FloatArray) -> FloatArray:
    order = np.argsort(values)
    middles = np.cumsum(weights[order]) - 0.5 * weights[order]
    return np.interp([_LOW, _HIGH], middles / weights.sum(), values[order])


def _spread(errors: Sequence[HeldOutError]) -> tuple[float, float]:
    """Mean size of an error as ``floor + slope x share``, neither below zero."""
    sizes = np.array([abs(error.residual) for error in errors])
    shares = np.array([error.share for error in errors])
    columns = np.stack([np.ones_like(shares), shares], axis=1)
    floor, slope = np.linalg.lstsq(columns, sizes, rcond=None)[0]
    if slope < 0:
        floor, slope = sizes.mean(), 0.0
    if floor < _LEAST_FLOOR:
        floor = _LEAST_FLOOR
        slope = max(0.0, float(((sizes - floor) * shares).sum() / max(1e-12, (shares**2).sum())))
    return float(floor), float(slope)
