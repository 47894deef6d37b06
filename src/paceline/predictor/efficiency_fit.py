"""Efficiency constants learned from measured layer times: the roofline made to fit a device."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from paceline.errors import InputError, MissingExtraError
from paceline.hardware import Device
from paceline.predictor.compute import layer_times
from paceline.predictor.efficiency import Efficiency, load_efficiency
from paceline.predictor.step_costs import LayerTime
from paceline.workload.cost import GraphCost
from paceline.workload.precision import Precision

_FRACTIONS = ("products.", "memory.")
_MOST_EVALUATIONS = 200
# Weighted errors beyond this count linearly: a layer that was disturbed does not bend the fit.
_OUTLIER = 0.05


@dataclass(frozen=True)
class LayerSample:
    """Measured times of the layers of one network at one batch on one device.

    Layers go by name; one that was not measured is left out of the fit.
    """

    cost: GraphCost
    device: Device
    precision: str | Precision
    measured: tuple[LayerTime, ...]


@dataclass(frozen=True)
class EfficiencyFit:
    """Fitted constants, and the root mean square of log(predicted / measured) around the fit."""

    efficiency: Efficiency
    error_before: float
    error_after: float
    layers: int


def fit_efficiency(
    samples: Sequence[LayerSample],
    constants: Sequence[str],
    start: Efficiency | None = None,
    prior_weight: float = 0.1,
) -> EfficiencyFit:
    """The named constants (``matrix.ceiling``, ...) that fit measured layers best.

    Errors are of logarithms, so that every layer counts alike however long it takes, each
    weighted by its share of its network's time. ``prior_weight`` is how strongly a constant is
    held to where it starts, in units of one network: with few layers it hardly moves.
    """
    if not samples or not constants:
        raise InputError("a fit needs measured layers and constants", "give at least one of each")
    usual = start or load_efficiency()
    known = usual.constants()
    before = np.log([known.get(name, 1.0) for name in constants])
    most = [0.0 if _is_fraction(name) else math.inf for name in constants]

    def changed(logarithms: NDArray[np.float64]) -> Efficiency:
        values = np.exp(logarithms).tolist()
        return usual.with_constants(dict(zip(constants, values, strict=True)))

    def residuals(logarithms: NDArray[np.float64]) -> NDArray[np.float64]:
        held = prior_weight * (logarithms - before)
        return np.concatenate([_errors(samples, changed(logarithms)), held])

    best = _least_squares(residuals, np.minimum(before, most), most)
    after = changed(best)
    return EfficiencyFit(
        efficiency=after,
        error_before=float(np.linalg.norm(_errors(samples, usual)) / math.sqrt(len(samples))),
        error_after=float(np.linalg.norm(_errors(samples, after)) / math.sqrt(len(samples))),
        layers=sum(len(sample.measured) for sample in samples),
    )


def _is_fraction(name: str) -> bool:
    return name.startswith(_FRACTIONS) or name.endswith((".ceiling", ".attainable"))


def _errors(samples: Sequence[LayerSample], efficiency: Efficiency) -> NDArray[np.float64]:
    """log(predicted / measured) of every pass of every layer, by the root of its share."""
    errors: list[float] = []
    for sample in samples:
        predicted = {
            layer.name: layer
            for layer in layer_times(sample.cost, sample.device, sample.precision, efficiency)
        }
        pairs = [
            pair
            for layer in sample.measured
            if layer.name in predicted
            for pair in _passes(layer, predicted[layer.name])
        ]
        total = sum(measured for measured, _ in pairs)
        errors += [
            math.sqrt(measured / total) * math.log(guess / measured) for measured, guess in pairs
        ]
    if not errors:
        raise InputError(
            "no measured layer has the name of a layer of its network",
            "name layers as 'paceline inspect' prints them",
        )
    return np.array(errors)


def _passes(measured: LayerTime, predicted: LayerTime) -> list[tuple[float, float]]:
    both = (
        (measured.forward_seconds, predicted.forward_seconds),
        (measured.backward_seconds, predicted.backward_seconds),
    )
    return [(seconds, guess) for seconds, guess in both if seconds > 0 and guess > 0]


def _least_squares(
    residuals: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    start: NDArray[np.float64],
    most: list[float],
) -> NDArray[np.float64]:
    try:
        from scipy.optimize import least_squares
    except ImportError:
        raise MissingExtraError(
            "fitting constants needs the package 'scipy'", "pip install 'paceline[fit]'"
        ) from None
    result = least_squares(
        residuals,
        start,
        bounds=([-math.inf] * len(most), [limit + 1e-9 for limit in most]),
        diff_step=np.full(len(start), 1e-3),
        max_nfev=_MOST_EVALUATIONS,
        loss="soft_l1",
        f_scale=_OUTLIER,
    )
    return np.asarray(result.x, dtype=np.float64)
