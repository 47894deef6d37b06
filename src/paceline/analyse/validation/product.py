"""The model under test: `predict` itself, with what is fitted without what is asked."""

import math
from collections.abc import Callable
from dataclasses import replace

from paceline.analyse.validation.forecast import Forecast, Skipped
from paceline.analyse.validation.hold_out import (
    HoldOut,
    efficiency_without,
    is_reference,
    level_of,
    model_without,
)
from paceline.analyse.validation.jobs import PublishedJob, job_of
from paceline.analyse.validation.measurement import Configuration, Measurement
from paceline.analyse.validation.rows import baseline_evidence, row_replica
from paceline.errors import PacelineError
from paceline.predictor.evidence import NO_EVIDENCE
from paceline.predictor.memory_fit import fits_probability
from paceline.predictor.predict import prediction_of, prepared_on
from paceline.predictor.step_corrections import NO_CORRECTIONS


class PacelineModel:
    """Answers rows by `paceline.predictor.predict`, given their baseline or nothing.

    ``hold_out`` says what the corrections for a row may not have seen; None takes those that come
    with the package.
    """

    name = "Paceline"

    def __init__(self, hold_out: HoldOut | None) -> None:
        self._hold_out = hold_out
        self._answers: dict[tuple[object, ...], Forecast | Skipped] = {}

    def predict(
        self, configuration: Configuration, baseline: Measurement | None
    ) -> Forecast | Skipped:
        """Throughput with its interval and memory, or why there is none; rows alike are one."""
        known = baseline and (baseline.configuration.unnamed, baseline.throughput)
        key = (configuration.unnamed, is_reference(configuration), known)
        if key not in self._answers:
            self._answers[key] = _answered(self._forecast, configuration, baseline)
        return self._answers[key]

    def _forecast(self, configuration: Configuration, baseline: Measurement | None) -> Forecast:
        job, replica = job_of(configuration), row_replica(configuration)
        unseen = self._holds_out(configuration)
        if unseen is not None and baseline is None:
            replica = replace(replica, efficiency=efficiency_without(*unseen))
        prediction = prediction_of(
            prepared_on(
                replica,
                evidence=NO_EVIDENCE
                if baseline is None
                else baseline_evidence(baseline, configuration),
                program=job.program,
                model=None if unseen is None else model_without(*unseen),
            )
        )
        throughput = _throughput(job, prediction.step_seconds)
        memory = None if job.cold_obstacle else float(prediction.memory.total_bytes)
        return Forecast(
            throughput,
            throughput * prediction.interval.low,
            throughput * prediction.interval.high,
            (*job.assumptions, *(note for note in prediction.notes if "domain" in note)),
            memory,
            None if memory is None else fits_probability(prediction),
        )

    def _holds_out(self, configuration: Configuration) -> tuple[HoldOut, str] | None:
        """What corrections and constants for a row may not have seen; None for the package's."""
        if self._hold_out is None:
            return None
        if self._hold_out is HoldOut.GROUP and not is_reference(configuration):
            return None
        return self._hold_out, level_of(configuration, self._hold_out)


class PhysicsAlone:
    """Answers rows by the scheduler and data sheets, without what published rows teach."""

    name = "physics alone"

    def __init__(self) -> None:
        self._answers: dict[tuple[object, ...], Forecast | Skipped] = {}

    def predict(
        self, configuration: Configuration, baseline: Measurement | None
    ) -> Forecast | Skipped:
        """Throughput without an interval, or why there is none; rows alike are one."""
        known = baseline and (baseline.configuration.unnamed, baseline.throughput)
        key = (configuration.unnamed, known)
        if key not in self._answers:
            self._answers[key] = _answered(self._forecast, configuration, baseline)
        return self._answers[key]

    def _forecast(self, configuration: Configuration, baseline: Measurement | None) -> Forecast:
        known = NO_EVIDENCE if baseline is None else baseline_evidence(baseline, configuration)
        replica = row_replica(configuration)
        prepared = prepared_on(replica, evidence=known, corrections=NO_CORRECTIONS)
        return Forecast(_throughput(job_of(configuration), prepared.seconds()))


def _answered(
    forecast: Callable[[Configuration, Measurement | None], Forecast],
    configuration: Configuration,
    baseline: Measurement | None,
) -> Forecast | Skipped:
    """A forecast, or the reason for which a row has none."""
    try:
        obstacle = job_of(configuration).cold_obstacle
        if baseline is None and obstacle:
            return Skipped(obstacle)
        answer = forecast(configuration, baseline)
    except PacelineError as problem:
        return Skipped(problem.message)
    except (ArithmeticError, ValueError) as problem:
        return Skipped(f"its numbers lead nowhere: {problem}")
    if not 0.0 < answer.throughput < math.inf:
        return Skipped(f"its numbers lead to a throughput of {answer.throughput:g}")
    return answer


def _throughput(job: PublishedJob, seconds: float) -> float:
    return job.samples * job.units_per_sample / seconds
