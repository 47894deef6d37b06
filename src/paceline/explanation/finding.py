"""Findings and the measurements that they are derived from."""

import math
from dataclasses import dataclass
from enum import StrEnum

from paceline.constants import number
from paceline.explanation.core_holders import Holder
from paceline.explanation.diagnose_comm import MeasuredExchange
from paceline.explanation.estimated_step import EstimatedStep
from paceline.explanation.measured_configuration import MeasuredConfiguration
from paceline.explanation.step_parts import Contention
from paceline.hardware.machine_profile import MachineProfile
from paceline.step.state_profile import Cell, ThreadState
from paceline.step.step_profile import StepProfile


class Cause(StrEnum):
    """Cause of a finding."""

    BATCH = "small batch"
    INPUT = "input"
    PAUSES = "pauses"
    CORES = "cores"
    THREADS = "thread oversubscription"
    WORKERS = "data-loader workers"
    OTHERS = "other programs"
    SLOW_CORE = "slow core"
    BLOCKED = "blocked host"
    DRIFT = "drift"
    UNUSED = "search for unused parameters"
    COLLECTIVES = "many small collectives"
    BLOCKING = "blocking collectives"
    SHARDING = "sharding"
    COPIES = "gradient copies"
    EXPOSED = "exposed communication"
    TENSOR = "one large tensor"
    MEMORY = "memory and cache contention"
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

    ``half_width`` is half the 95 % interval of ``seconds``, NaN if unknown. ``verdict`` names the
    problem and ``why`` the evidence. ``assumes`` is what the saving assumes. ``trial`` is the
    remedy as NAME=VALUE of ``run --try``, empty if it cannot be tried automatically.
    """

    cause: Cause
    seconds: float
    saved_seconds: float
    verdict: str
    why: str
    remedy: str
    half_width: float = math.nan
    assumes: str = ""
    trial: str = ""

    @property
    def of_the_job(self) -> bool:
        """Whether the cause is the job, not what else runs on the machine."""
        return self.cause not in (Cause.OTHERS, Cause.SLOW_CORE)


@dataclass(frozen=True)
class DiagnosisInput:
    """Measurements that findings are derived from."""

    observed: MeasuredConfiguration
    alone: MeasuredConfiguration | None
    step: EstimatedStep
    before: EstimatedStep | None
    holders: Contention
    profile: StepProfile | None
    exchange: MeasuredExchange | None
    machine: MachineProfile | None

    @property
    def step_seconds(self) -> float:
        return self.observed.group.step.mean

    @property
    def own_seconds(self) -> float:
        """The step without what other programs cost: the measure of what is a bottleneck."""
        return self.step_seconds - self.holders.by_holder.get(Holder.OTHERS, 0.0)

    @property
    def bottleneck_seconds(self) -> float:
        """The least cost of a cause that makes a job unhealthy."""
        return number("explain.finding.bottleneck") * self.own_seconds

    @property
    def noise_seconds(self) -> float:
        """Error of a difference from one process."""
        alone = 0.0 if self.alone is None else self.alone.noise_seconds
        return math.hypot(self.observed.noise_seconds, alone)

    def seconds(self, name: str) -> float:
        """Seconds of a part of the step if its interval excludes zero, else 0."""
        found: float = getattr(self.step.parts, name)
        return max(0.0, found) if self.step.distinguishable(name) else 0.0

    def width(self, name: str, seconds: float) -> float:
        """Half the interval of ``seconds`` of a part."""
        part: float = getattr(self.step.parts, name)
        own: float = getattr(self.step.widths, name)
        return own * seconds / part if part > 0 else own

    def line_of(self, state: str) -> str:
        """Line of the script sampled most often in the largest cell of a state; may be empty."""
        cells = {
            cell: seconds
            for cell, seconds in self.step.cells.items()
            if cell.state is ThreadState(state) and str(cell) in self.step.states.lines
        }
        if not cells:
            return ""
        largest: Cell = max(cells, key=lambda cell: cells[cell])
        return self.step.states.lines[str(largest)]


def least_share_saved() -> float:
    """Share of the step that a remedy must save to be reported."""
    return number("explain.finding.least_share_saved")
