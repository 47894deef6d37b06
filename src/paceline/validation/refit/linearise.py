"""Linearise measurements in the fitted quantities, around their prior values."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from paceline.predictor.prediction_inputs import ModelledStep
from paceline.predictor.uncertainty.correction_model import step_corrections
from paceline.predictor.uncertainty.covariates import Covariates
from paceline.predictor.uncertainty.mixed_effects import Quantity
from paceline.predictor.uncertainty.quantities import SMALL_MOVE
from paceline.validation.published_row import Configuration
from paceline.validation.refit.mixed_model import Columns
from paceline.validation.row_step_model import row_seconds

FloatArray = npt.NDArray[np.float64]
Step = tuple[Configuration, ModelledStep, float]
"""A row, its modelled step, and the measured seconds."""


@dataclass(frozen=True)
class Statement:
    """One measured step as a linear statement about the quantities of ``slopes``.

    The sum of slope x quantity is ``response``, up to noise: the logarithm of the step, about
    the values at which it was linearised.
    """

    id: str
    slopes: Mapping[str, float]
    response: float


def statement(
    identifier: str,
    step: ModelledStep,
    measured_seconds: float,
    values: Mapping[str, float],
    quantities: Sequence[Quantity],
) -> Statement:
    """The statement of a measured step, linearised at ``values`` of every quantity."""
    seconds = seconds_under(step, values)
    slopes, response = {}, math.log(measured_seconds / seconds)
    for quantity in quantities:
        moved = {**values, quantity.name: values[quantity.name] + SMALL_MOVE}
        slope = math.log(seconds_under(step, moved) / seconds) / SMALL_MOVE
        slopes[quantity.name] = slope
        response += slope * values[quantity.name]
    return Statement(identifier, slopes, response)


def seconds_under(step: ModelledStep, values: Mapping[str, float]) -> float:
    """Seconds of a step for values of the quantities on their own scales."""
    return row_seconds(step, step_corrections(values))


def design_of(
    columns: Columns, rows: Sequence[Covariates], statements: Sequence[Statement]
) -> tuple[FloatArray, FloatArray]:
    """Design matrix and response of many statements."""
    design = np.zeros((len(rows), len(columns.index)))
    for quantity in columns.quantities:
        slopes = np.array([each.slopes[quantity.name] for each in statements])
        design += slopes[:, None] * columns.members(quantity, rows)
    return design, np.array([each.response for each in statements])
