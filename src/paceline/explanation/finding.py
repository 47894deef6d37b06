"""Findings and the measurements that they are derived from."""

import math
from dataclasses import dataclass
from enum import StrEnum

from paceline.constants import number
from paceline.explanation.diagnose_comm import MeasuredExchange
from paceline.explanation.measured_configuration import MeasuredConfiguration
from paceline.explanation.overheads import StepOverheads
from paceline.hardware.machine_profile import MachineProfile
from paceline.step.step_profile import StepProfile


class Cause(StrEnum):
    """Cause of a finding."""

    BATCH = "small batch"
    INPUT = "input"
    PAUSES = "pauses"
    CORES = "cores"
    STRAGGLER = "straggler"
    JITTER = "jitter"
    START = "slow start of collectives"
    LINK = "slow link"
    BUCKETS = "buckets"
    OVERLAP = "no overlap"
    ACCUMULATION = "synchronised accumulation"
    COLLECTION = "garbage collection"
    VOLUME = "large gradient"
    HOST = "host overhead"
    PROCESSES = "too many processes"


@dataclass(frozen=True)
class Diagnosis:
    """A finding: ``cause`` costs ``seconds`` per step, ``remedy`` saves ``saved_seconds``.

    ``verdict`` names the problem and ``why`` the evidence. Savings of communication remedies are
    computed with the predictor's schedule.
    """

    cause: Cause
    seconds: float
    saved_seconds: float
    verdict: str
    why: str
    remedy: str


@dataclass(frozen=True)
class UninstrumentedInput:
    """Measurements of a step that was not instrumented."""

    observed: MeasuredConfiguration
    overheads: StepOverheads
    alone: MeasuredConfiguration | None

    @property
    def step_seconds(self) -> float:
        return self.observed.group.step.mean

    @property
    def noise_seconds(self) -> float:
        """Error of a difference from one process."""
        alone = 0.0 if self.alone is None else self.alone.noise_seconds
        return math.hypot(self.observed.noise_seconds, alone)


@dataclass(frozen=True)
class DiagnosisInput(UninstrumentedInput):
    """Measurements that findings are derived from."""

    profile: StepProfile
    exchange: MeasuredExchange | None
    machine: MachineProfile | None


def least_share_saved() -> float:
    """Share of the step that a remedy must save to be reported."""
    return number("explain.finding.least_share_saved")
