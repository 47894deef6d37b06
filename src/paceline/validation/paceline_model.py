"""The model under test: `predict` with corrections fitted without held-out rows."""

import math
from abc import ABC, abstractmethod
from dataclasses import replace

from paceline.errors import PacelineError
from paceline.predictor.memory.fit_probability import fits_probability
from paceline.predictor.predict import model_step, predict_step, with_corrections
from paceline.validation.forecast import Forecast, Skipped
from paceline.validation.hold_out import (
    HoldOut,
    efficiency_without,
    is_reference,
    level_of,
    model_without,
)
from paceline.validation.published_job import PublishedJob, job_of
from paceline.validation.published_row import Configuration, PublishedRow
from paceline.validation.row_step_model import (
    baseline_evidence,
    row_seconds,
    row_step,
    with_evidence,
)


class _CachedModel(ABC):
    """A model that predicts equal rows once."""

    def __init__(self) -> None:
        self._answers: dict[tuple[object, ...], Forecast | Skipped] = {}

    def predict(
        self, configuration: Configuration, baseline: PublishedRow | None
    ) -> Forecast | Skipped:
        """The forecast of a row, or the reason why there is none."""
        known = baseline and (baseline.configuration.unnamed, baseline.throughput)
        key = (configuration.unnamed, is_reference(configuration), known)
        if key not in self._answers:
            self._answers[key] = self._answer(configuration, baseline)
        return self._answers[key]

    def _answer(
        self, configuration: Configuration, baseline: PublishedRow | None
    ) -> Forecast | Skipped:
        try:
            obstacle = job_of(configuration).cold_obstacle
            if baseline is None and obstacle:
                return Skipped(obstacle)
            answer = self._forecast(configuration, baseline)
        except PacelineError as problem:
            return Skipped(problem.message)
        except (ArithmeticError, ValueError) as problem:
            return Skipped(f"its numbers are inconsistent: {problem}")
        if not 0.0 < answer.throughput < math.inf:
            return Skipped(f"its numbers give a throughput of {answer.throughput:g}")
        return answer

    @abstractmethod
    def _forecast(self, configuration: Configuration, baseline: PublishedRow | None) -> Forecast:
        """Predict a row that can be predicted."""


class PacelineModel(_CachedModel):
    """Predicts rows with `paceline.predictor.predict`, with or without their baseline.

    ``hold_out`` selects the rows that corrections are fitted without; None uses the shipped ones.
    ``as_typed`` uses the default tuning of a program instead of the tuning of the source.
    """

    name = "Paceline"

    def __init__(self, hold_out: HoldOut | None, as_typed: bool = False) -> None:
        super().__init__()
        self._hold_out = hold_out
        self._as_typed = as_typed

    def _forecast(self, configuration: Configuration, baseline: PublishedRow | None) -> Forecast:
        job, step = job_of(configuration), row_step(configuration)
        unseen = self._holds_out(configuration)
        if unseen is not None and baseline is None:
            step = model_step(replace(step.job, efficiency=efficiency_without(*unseen)))
        if baseline is not None:
            step = with_evidence(step, baseline_evidence(baseline, configuration))
        model = None if unseen is None else model_without(*unseen)
        program = replace(job.program, tuning=None) if self._as_typed else job.program
        corrected = with_corrections(step.job, program, model=model)
        prediction = predict_step(replace(step, job=corrected))
        throughput = _throughput(job, prediction.step_seconds)
        known = configuration.determines_memory and not job.cold_obstacle
        memory = float(prediction.memory.total_bytes) if known else None
        return Forecast(
            throughput,
            throughput * prediction.interval.low,
            throughput * prediction.interval.high,
            (*job.assumptions, *(note for note in prediction.notes if "domain" in note)),
            memory,
            None if memory is None else fits_probability(prediction),
            None if memory is None else float(prediction.stage_memories[0].total_bytes),
        )

    def _holds_out(self, configuration: Configuration) -> tuple[HoldOut, str] | None:
        """The held-out level of a row; None for shipped corrections and constants."""
        if self._hold_out is None:
            return None
        if self._hold_out is HoldOut.GROUP and not is_reference(configuration):
            return None
        return self._hold_out, level_of(configuration, self._hold_out)


class PhysicsAlone(_CachedModel):
    """Predicts rows from schedule and data sheets, without corrections fitted to rows."""

    name = "physics alone"

    def _forecast(self, configuration: Configuration, baseline: PublishedRow | None) -> Forecast:
        step = row_step(configuration)
        if baseline is not None:
            step = with_evidence(step, baseline_evidence(baseline, configuration))
        return Forecast(_throughput(job_of(configuration), row_seconds(step)))


def _throughput(job: PublishedJob, seconds: float) -> float:
    return job.samples * job.units_per_sample / seconds
