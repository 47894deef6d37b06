"""The model under test: Paceline's own predictor with its fitted constants."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from paceline.analyse.validation.circumstances import circumstances_of
from paceline.analyse.validation.forecast import Forecast, Skipped
from paceline.analyse.validation.jobs import Job, cold_obstacle, job_of
from paceline.analyse.validation.measurement import Configuration, Measurement
from paceline.analyse.validation.parts import StepParts, StepTaker, takes_whole_step
from paceline.analyse.validation.seen import effects_without_family, effects_without_group
from paceline.errors import PacelineError
from paceline.predictor.fitted.circumstances import Circumstances
from paceline.predictor.fitted.computing import COMPUTING, computing_factor
from paceline.predictor.fitted.effects import Effects
from paceline.predictor.fitted.intervals import (
    BASELINE,
    COLD,
    FAR,
    NEAR,
    SAME,
    Intervals,
)
from paceline.predictor.fitted.scaling import (
    PREDICTOR_ALONE,
    VARIATION,
    added_seconds,
    slowest_of,
    terms_for,
)
from paceline.predictor.fitted.tables import fitted

_INVERSIONS = 4
_LEAST_ALONE_SHARE = 0.2


class HoldOut(StrEnum):
    """Which measurements the constants for a row may not come from."""

    GROUP = "group"
    """Its group: the score of a prediction where others of its kind were measured."""
    FAMILY = "family"
    """Its whole source: the score of a prediction for a machine and program never seen."""


@dataclass(frozen=True, slots=True)
class StepForecast:
    """Predicted seconds per step, the part that many devices add, and whether it is near."""

    seconds: float
    added_share: float
    distance: str


class PacelineModel:
    """Predicts published rows as the product would, from constants of other rows.

    ``effects_for`` gives the fitted effects for a configuration; ``intervals`` is None while
    they are yet to be made.
    """

    def __init__(
        self,
        effects_for: Callable[[Configuration], Effects],
        intervals: Intervals | None,
        taker: StepTaker | None = None,
        name: str = "Paceline",
    ) -> None:
        self.name = name
        self.taker = taker or StepTaker()
        self._effects_for = effects_for
        self._intervals = intervals
        self._cold_steps: dict[tuple[Configuration, int], StepForecast | Skipped] = {}
        self._parts: dict[tuple[Configuration, float], StepParts] = {}

    def predict(
        self, configuration: Configuration, baseline: Measurement | None
    ) -> Forecast | Skipped:
        """Throughput with its interval, or why there is none."""
        try:
            job = job_of(configuration)
            step = self.step(configuration, job, baseline)
        except PacelineError as problem:
            return Skipped(problem.message)
        except (ArithmeticError, ValueError) as problem:
            return Skipped(f"its numbers lead nowhere: {problem}")
        if isinstance(step, Skipped):
            return step
        if not 0.0 < step.seconds < math.inf:
            return Skipped(f"its numbers lead to a step of {step.seconds:g} s")
        throughput = configuration.global_batch * job.units_per_sample / step.seconds
        remarks = list(job.assumptions)
        if step.distance == FAR:
            remarks.append(
                "outside the validated domain: no measurement of this program was fitted"
            )
        if self._intervals is None:
            return Forecast(throughput, remarks=tuple(remarks))
        rule = self._intervals.rule(COLD if baseline is None else BASELINE, step.distance)
        low, high = rule.bounds(throughput, step.added_share)
        return Forecast(throughput, low, high, tuple(remarks))

    def step(
        self, configuration: Configuration, job: Job, baseline: Measurement | None
    ) -> StepForecast | Skipped:
        """Seconds per step of the whole job."""
        effects = self._effects_for(configuration)
        if baseline is not None:
            return self._from_baseline(configuration, job, baseline, effects)
        key = (configuration.unnamed, id(effects))
        if key not in self._cold_steps:
            self._cold_steps[key] = self._cold(configuration, job, effects)
        return self._cold_steps[key]

    def _cold(
        self, configuration: Configuration, job: Job, effects: Effects
    ) -> StepForecast | Skipped:
        obstacle = cold_obstacle(configuration)
        if obstacle is not None:
            return obstacle
        circumstances = circumstances_of(configuration, job)
        distance = _cold_distance(effects, circumstances)
        alone = self.taker.predicted_alone_seconds(job)
        alone *= computing_factor(effects, circumstances)
        if takes_whole_step(job):
            return StepForecast(alone, 0.0, distance)
        added = self._added(configuration, job, effects, alone)
        return StepForecast(alone + added, added / (alone + added), distance)

    def _from_baseline(
        self, configuration: Configuration, job: Job, baseline: Measurement, effects: Effects
    ) -> StepForecast:
        reference = job_of(baseline.configuration)
        seconds = baseline.step_seconds * job.units_per_sample
        circumstances = circumstances_of(configuration, job)
        distance = NEAR if effects.knows(VARIATION.name, "script", circumstances) else FAR
        if takes_whole_step(job) and _both_known(configuration, baseline.configuration):
            ratio = self.taker.predicted_alone_seconds(job)
            ratio /= self.taker.predicted_alone_seconds(reference)
            return StepForecast(seconds * ratio, abs(ratio - 1.0) / (ratio + 1.0), distance)
        alone = seconds
        for _ in range(_INVERSIONS if reference.plan.devices > 1 else 0):
            added = self._added(baseline.configuration, reference, effects, alone)
            alone = max(seconds - added, _LEAST_ALONE_SHARE * seconds)
        alone *= configuration.batch_per_device / baseline.configuration.batch_per_device
        added = self._added(configuration, job, effects, alone)
        return StepForecast(alone + added, added / (alone + added), distance)

    def _added(
        self, configuration: Configuration, job: Job, effects: Effects, alone_seconds: float
    ) -> float:
        if job.plan.devices == 1:
            return 0.0
        key = (configuration.unnamed, alone_seconds)
        if key not in self._parts:
            self._parts[key] = self.taker.parts(job, alone_seconds)
        parts = self._parts[key]
        terms = terms_for(effects, circumstances_of(configuration, job), configuration.nodes)
        return float(
            added_seconds(
                terms,
                alone_seconds,
                parts.exposed_seconds,
                parts.message_seconds,
                slowest_of(configuration.devices),
            )
        )


def paceline_model(hold_out: HoldOut = HoldOut.GROUP) -> PacelineModel:
    """The model with the constants that come with the package.

    Rows that those were fitted on, under any name, are predicted with constants that have not
    seen their group (or family); rows that they have not seen with the full fit.
    """
    everything = fitted()
    without = effects_without_group if hold_out is HoldOut.GROUP else effects_without_family

    def effects_for(configuration: Configuration) -> Effects:
        return without(configuration) or everything.effects

    return PacelineModel(effects_for, everything.intervals)


def predictor_alone(taker: StepTaker) -> PacelineModel:
    """The scheduler and the catalogue without any fitted effect, for comparison."""
    return PacelineModel(lambda each: PREDICTOR_ALONE, None, taker, "predictor alone")


def _cold_distance(effects: Effects, circumstances: Circumstances) -> str:
    if effects.knows(COMPUTING.name, "kernel", circumstances):
        return SAME
    return NEAR if effects.knows(COMPUTING.name, "program", circumstances) else FAR


def _both_known(first: Configuration, second: Configuration) -> bool:
    return cold_obstacle(first) is None and cold_obstacle(second) is None
