"""The model under test: `predict` itself, with corrections that have not seen what is asked."""

import math

from paceline.analyse.validation.forecast import Forecast, Skipped
from paceline.analyse.validation.hold_out import HoldOut, is_reference, level_of, model_without
from paceline.analyse.validation.jobs import job_of
from paceline.analyse.validation.measurement import Configuration, Measurement
from paceline.analyse.validation.rows import baseline_evidence, row_replica
from paceline.errors import PacelineError
from paceline.predictor.corrections.model import CorrectionModel
from paceline.predictor.evidence import NO_EVIDENCE
from paceline.predictor.memory_fit import fits_probability
from paceline.predictor.predict import prediction_of, prepared_on
from paceline.predictor.prediction import Prediction
from paceline.predictor.step_corrections import NO_CORRECTIONS


class PacelineModel:
    """Answers rows by `paceline.predictor.predict`, given their baseline or nothing.

    ``hold_out`` says what the corrections for a reference row may not have seen; None takes
    those that come with the package. ``physics_only`` leaves corrections out altogether.
    """

    def __init__(self, hold_out: HoldOut | None, *, physics_only: bool = False) -> None:
        self.name = "physics alone" if physics_only else "Paceline"
        self._hold_out = hold_out
        self._physics_only = physics_only

    def predict(
        self, configuration: Configuration, baseline: Measurement | None
    ) -> Forecast | Skipped:
        """Throughput with its interval and memory, or why there is none."""
        try:
            job = job_of(configuration)
            if baseline is None and job.cold_obstacle:
                return Skipped(job.cold_obstacle)
            prediction = self.prediction(configuration, baseline)
        except PacelineError as problem:
            return Skipped(problem.message)
        except (ArithmeticError, ValueError) as problem:
            return Skipped(f"its numbers lead nowhere: {problem}")
        seconds = prediction.step_seconds
        if not 0.0 < seconds < math.inf:
            return Skipped(f"its numbers lead to a step of {seconds:g} s")
        throughput = job.samples * job.units_per_sample / seconds
        low, high = prediction.interval.low, prediction.interval.high
        memory = float(prediction.memory.total_bytes) if not job.cold_obstacle else None
        return Forecast(
            throughput,
            None if self._physics_only else throughput * low,
            None if self._physics_only else throughput * high,
            (*job.assumptions, *(note for note in prediction.notes if "domain" in note)),
            memory,
            None if memory is None else fits_probability(prediction),
        )

    def prediction(self, configuration: Configuration, baseline: Measurement | None) -> Prediction:
        """The answer of `predict` to a row."""
        job = job_of(configuration)
        prepared = prepared_on(
            row_replica(configuration),
            evidence=NO_EVIDENCE if baseline is None else baseline_evidence(baseline),
            program=job.program,
            corrections=NO_CORRECTIONS if self._physics_only else None,
            model=self._model(configuration),
            bandwidth_spread=job.bandwidth_spread,
        )
        return prediction_of(prepared)

    def _model(self, configuration: Configuration) -> CorrectionModel | None:
        """Corrections fitted without what is left out; None for those of the package."""
        if self._hold_out is None or self._physics_only:
            return None
        if self._hold_out is HoldOut.GROUP and not is_reference(configuration):
            return None
        return model_without(self._hold_out, level_of(configuration, self._hold_out))
