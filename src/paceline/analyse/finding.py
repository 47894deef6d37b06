"""What a finding is, and everything that findings are drawn from."""

import math
from dataclasses import dataclass
from enum import StrEnum

from paceline.analyse.losses import Losses
from paceline.analyse.message_causes import MeasuredExchange
from paceline.analyse.observed import Observed
from paceline.constants import number
from paceline.hardware.profile import MachineProfile
from paceline.step import StepProfile


class Cause(StrEnum):
    """What a finding blames."""

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
    """One finding: ``seconds`` per step are due to ``cause``, ``saved_seconds`` by the remedy.

    ``verdict`` says what it is, ``why`` how that is known, ``remedy`` what to do; ``saved_seconds``
    is computed, by the predictor's schedule where messages are concerned.
    """

    cause: Cause
    seconds: float
    saved_seconds: float
    verdict: str
    why: str
    remedy: str


@dataclass(frozen=True)
class Outside:
    """What is known of a step that nobody looked into."""

    observed: Observed
    losses: Losses
    alone: Observed | None

    @property
    def step_seconds(self) -> float:
        """The step that is explained."""
        return self.observed.group.step.mean

    @property
    def noise_seconds(self) -> float:
        """How far a difference from one process alone may be off."""
        alone = 0.0 if self.alone is None else self.alone.noise_seconds
        return math.hypot(self.observed.noise_seconds, alone)


@dataclass(frozen=True)
class Case(Outside):
    """Everything that findings are drawn from."""

    profile: StepProfile
    exchange: MeasuredExchange | None
    machine: MachineProfile | None


def least_share_saved() -> float:
    """Part of the step that a remedy must save to be told."""
    return number("explain.finding.worth_a_word")
