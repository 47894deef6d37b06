"""Fits what many devices add to one, on pairs of a baseline and a larger row."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from paceline.analyse.validation.cases import Case
from paceline.analyse.validation.circumstances import circumstances_of
from paceline.analyse.validation.fitting.mixed_model import Fit, Parameters, fit
from paceline.analyse.validation.jobs import job_of
from paceline.analyse.validation.measurement import Measurement
from paceline.analyse.validation.parts import StepParts, StepTaker
from paceline.predictor.fitted.circumstances import Circumstances
from paceline.predictor.fitted.scaling import (
    ACROSS_NODES,
    BANDWIDTH,
    OVERHEAD,
    SCALING,
    UNHIDDEN,
    VARIATION,
    added_seconds,
    scaling_terms,
    slowest_of,
)

FloatArray = npt.NDArray[np.float64]
_NOISE = 0.03
_USUAL_ALONE_SHARE = 0.9
_LEAST_ALONE_SHARE = 0.3
_INVERSIONS = 3
_STEP = 0.01
_Values = Mapping[str, Mapping[str, FloatArray]]
"""Values of the quantities for every pair, by side and quantity."""


@dataclass(frozen=True)
class _Side:
    """Rows of one side of the pairs (the baselines, or what is to be predicted) as arrays."""

    circumstances: list[Circumstances]
    exposed: FloatArray
    message: FloatArray
    slowest: FloatArray
    several_nodes: FloatArray

    @classmethod
    def of(cls, rows: Sequence[Measurement], parts: Sequence[StepParts]) -> "_Side":
        configurations = [row.configuration for row in rows]
        return cls(
            [circumstances_of(each, job_of(each)) for each in configurations],
            np.array([part.exposed_seconds for part in parts]),
            np.array([part.message_seconds for part in parts]),
            np.array([slowest_of(each.devices) for each in configurations]),
            np.array([float(each.nodes > 1) for each in configurations]),
        )

    def added_seconds(self, values: Mapping[str, FloatArray], alone: FloatArray) -> FloatArray:
        """What many devices add where quantities have such ``values``."""
        variation = values[VARIATION.name] + self.several_nodes * values[ACROSS_NODES.name]
        terms = scaling_terms(
            values[UNHIDDEN.name], values[BANDWIDTH.name], variation, values[OVERHEAD.name]
        )
        added = added_seconds(terms, alone, self.exposed, self.message, self.slowest)
        return np.where(self.slowest > 0, added, 0.0)


class ScalingFit:
    """Pairs ready to be fitted, as often as rows are to be held out."""

    def __init__(self, cases: Sequence[Case], taker: StepTaker) -> None:
        pairs = [(c.measurement, c.baseline) for c in cases if c.baseline is not None]
        self.rows = [row for row, _ in pairs]
        baselines = [baseline for _, baseline in pairs]
        jobs = [job_of(row.configuration) for row in self.rows]
        units = np.array([job.units_per_sample for job in jobs])
        self._measured = units * [row.step_seconds for row in self.rows]
        self._baseline = units * [row.step_seconds for row in baselines]
        self._ratio = np.array(
            [
                row.configuration.batch_per_device / baseline.configuration.batch_per_device
                for row, baseline in pairs
            ]
        )
        self._from = _Side.of(
            baselines,
            [
                taker.parts(job_of(row.configuration), _USUAL_ALONE_SHARE * seconds)
                for row, seconds in zip(baselines, self._baseline, strict=True)
            ],
        )
        alone = self._baseline * self._ratio
        alone = np.where(self._from.slowest > 0, _USUAL_ALONE_SHARE * alone, alone)
        self._to = _Side.of(
            self.rows,
            [taker.parts(job, seconds) for job, seconds in zip(jobs, alone, strict=True)],
        )
        everyone = [*self._from.circumstances, *self._to.circumstances]
        self.parameters = Parameters.of(SCALING, everyone)
        self._members = {
            side: {
                quantity.name: self.parameters.members(quantity, each.circumstances)
                for quantity in SCALING
            }
            for side, each in (("from", self._from), ("to", self._to))
        }

    def fitted(
        self, weights: FloatArray, start: FloatArray | None = None, iterations: int = 8
    ) -> Fit:
        """The fitted parameters when rows count by ``weights``."""
        return fit(
            self._linearised,
            np.log(self._measured),
            weights,
            self.parameters,
            noise=_NOISE,
            start=start,
            iterations=iterations,
        )

    def _linearised(self, vector: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Predictions, and their slopes: by quantity and side first, then by parameter."""
        values = {
            side: {name: matrix @ vector for name, matrix in members.items()}
            for side, members in self._members.items()
        }
        current = self._predicted_log(values)
        slopes = np.zeros((len(current), len(vector)))
        for side, members in self._members.items():
            for name, matrix in members.items():
                moved = {**values[side], name: values[side][name] + _STEP}
                slope = (self._predicted_log({**values, side: moved}) - current) / _STEP
                slopes += slope[:, None] * matrix
        return current, slopes

    def _predicted_log(self, values: _Values) -> FloatArray:
        alone = self._baseline
        for _ in range(_INVERSIONS):
            added = self._from.added_seconds(values["from"], alone)
            alone = np.maximum(self._baseline - added, _LEAST_ALONE_SHARE * self._baseline)
        alone = alone * self._ratio
        return np.asarray(np.log(alone + self._to.added_seconds(values["to"], alone)))
