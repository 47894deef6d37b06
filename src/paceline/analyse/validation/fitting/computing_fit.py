"""Fits how much longer devices compute than the catalogue says, on every row."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from paceline.analyse.validation.circumstances import circumstances_of
from paceline.analyse.validation.fitting.mixed_model import Fit, Parameters, fit
from paceline.analyse.validation.jobs import cold_obstacle, job_of
from paceline.analyse.validation.measurement import Measurement
from paceline.analyse.validation.parts import StepTaker, takes_whole_step
from paceline.predictor.fitted.computing import COMPUTING
from paceline.predictor.fitted.effects import Effects
from paceline.predictor.fitted.scaling import added_seconds, slowest_of, terms_for

FloatArray = npt.NDArray[np.float64]
_NOISE = 0.12
_USUAL_ALONE_SHARE = 0.9
_LEAST_ALONE_SHARE = 0.25
_INVERSIONS = 5


class ComputingFit:
    """Rows ready to be fitted: what was predicted for the device alone, and what was measured."""

    def __init__(self, measurements: Sequence[Measurement], taker: StepTaker) -> None:
        self.rows = [row for row in measurements if cold_obstacle(row.configuration) is None]
        self._jobs = [job_of(row.configuration) for row in self.rows]
        self._circumstances = [
            circumstances_of(row.configuration, job)
            for row, job in zip(self.rows, self._jobs, strict=True)
        ]
        self._predicted = np.array([taker.predicted_alone_seconds(job) for job in self._jobs])
        self._measured = np.array(
            [
                row.step_seconds * job.units_per_sample
                for row, job in zip(self.rows, self._jobs, strict=True)
            ]
        )
        self._whole = np.array([takes_whole_step(job) for job in self._jobs])
        parts = [
            None if whole else taker.parts(job, _USUAL_ALONE_SHARE * seconds)
            for job, whole, seconds in zip(self._jobs, self._whole, self._measured, strict=True)
        ]
        self._exposed = np.array([part.exposed_seconds if part else 0.0 for part in parts])
        self._message = np.array([part.message_seconds if part else 0.0 for part in parts])
        self.parameters = Parameters.of((COMPUTING,), self._circumstances)
        self._members = self.parameters.members(COMPUTING, self._circumstances)

    def fitted(
        self,
        scaling: Effects,
        weights: FloatArray,
        start: FloatArray | None = None,
        iterations: int = 5,
    ) -> Fit:
        """The fitted parameters when rows count by ``weights`` and ``scaling`` is known."""
        return fit(
            lambda vector: (self._members @ vector, self._members),
            np.log(self._alone_seconds(scaling) / self._predicted),
            weights,
            self.parameters,
            noise=_NOISE,
            start=start,
            iterations=iterations,
        )

    def _alone_seconds(self, scaling: Effects) -> FloatArray:
        """Measured steps less what many devices add to one."""
        terms = [
            terms_for(scaling, each, row.configuration.nodes)
            for each, row in zip(self._circumstances, self.rows, strict=True)
        ]
        slowest = np.array([slowest_of(row.configuration.devices) for row in self.rows])
        alone = self._measured
        for _ in range(_INVERSIONS):
            added = np.array(
                [
                    added_seconds(term, *numbers)
                    for term, *numbers in zip(
                        terms, alone, self._exposed, self._message, slowest, strict=True
                    )
                ],
                dtype=np.float64,
            )
            added = np.where((slowest > 0) & ~self._whole, added, 0.0)
            alone = np.maximum(self._measured - added, _LEAST_ALONE_SHARE * self._measured)
        return alone
