"""Fits what many devices add to one, on pairs of a baseline and a larger row."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from paceline.analyse.validation.cases import Case
from paceline.analyse.validation.circumstances import circumstances_of
from paceline.analyse.validation.fitting.mixed_model import Fit, Parameters, fit
from paceline.analyse.validation.jobs import job_of
from paceline.analyse.validation.measurement import Measurement
from paceline.analyse.validation.parts import StepParts, StepTaker
from paceline.predict.fitted.circumstances import Circumstances
from paceline.predict.fitted.scaling import (
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
            self._predicted_log,
            np.log(self._measured),
            weights,
            self.parameters,
            noise=_NOISE,
            start=start,
            iterations=iterations,
        )

    def _predicted_log(self, vector: FloatArray) -> FloatArray:
        alone = self._baseline
        for _ in range(_INVERSIONS):
            added = self._added("from", self._from, vector, alone)
            alone = np.maximum(self._baseline - added, _LEAST_ALONE_SHARE * self._baseline)
        alone = alone * self._ratio
        return np.asarray(np.log(alone + self._added("to", self._to, vector, alone)))

    def _added(self, side: str, rows: _Side, vector: FloatArray, alone: FloatArray) -> FloatArray:
        members = self._members[side]
        variation = members[VARIATION.name] @ vector
        variation += rows.several_nodes * (members[ACROSS_NODES.name] @ vector)
        terms = scaling_terms(
            members[UNHIDDEN.name] @ vector,
            members[BANDWIDTH.name] @ vector,
            variation,
            members[OVERHEAD.name] @ vector,
        )
        added = added_seconds(terms, alone, rows.exposed, rows.message, rows.slowest)
        return np.where(rows.slowest > 0, added, 0.0)
