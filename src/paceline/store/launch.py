"""The launch: one start of a training job, the unit of replication of everything Paceline says."""

import math
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from paceline.step import Step

UNSTABLE = "unstable"
"""What facts say of a launch whose steps never kept one level."""


class Status(StrEnum):
    """How a launch stands; only a finished one has figures that count."""

    RUNNING = "running"
    FINISHED = "finished"
    FAILED = "failed"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True)
class RankSteps:
    """Step times of one rank, warm-up included, in the order in which they ran (seconds).

    ``delay_seconds`` is how long the thread that steps was ready to run and had no core; older
    launches and some systems do not tell.
    """

    rank: int
    wall_seconds: tuple[float, ...]
    cpu_seconds: tuple[float, ...] = ()
    losses: tuple[float, ...] = ()
    delay_seconds: tuple[float, ...] = ()


@dataclass(frozen=True)
class LayerTiming:
    """Median forward and backward seconds of one layer, and the bytes of its gradient."""

    name: str
    forward_seconds: float
    backward_seconds: float
    gradient_bytes: float


@dataclass(frozen=True)
class Outcome:
    """How a launch ended, and what it left: times, timelines, layers, logs.

    ``reason`` is one line for a person when the status is not finished. ``facts`` holds what the
    ranks said of themselves (versions, exit codes, load average before and after).
    """

    status: Status
    ended_at: str
    reason: str = ""
    ranks: tuple[RankSteps, ...] = ()
    layers: tuple[LayerTiming, ...] = ()
    timeline: Step | None = None
    facts: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Launch:
    """One launch: what was asked for (``job``), where (``environment``) and how it ended.

    ``batch_per_rank`` counts samples per rank and step; ``world_size`` ranks in all.
    ``instrument`` is ``none`` for plain launches, whose times count as throughput, else what was
    observed inside the step. ``provenance`` is ``measured`` or ``imported``.
    """

    id: str
    study: str
    created_at: str
    framework: str
    model: str
    world_size: int
    nodes: int
    batch_per_rank: int
    precision: str
    instrument: str
    synchronised: bool
    warmup_steps: int
    job: dict[str, Any]
    environment: dict[str, Any]
    outcome: Outcome
    provenance: str = "measured"

    @property
    def status(self) -> Status:
        """How the launch stands."""
        return self.outcome.status

    @property
    def is_steady(self) -> bool:
        """Whether it may be averaged: not where its warm-up was looked for and has no end."""
        return self.outcome.facts.get("steadiness") != UNSTABLE

    @property
    def cores_used(self) -> float:
        """CPU seconds over wall seconds of the counted steps, the busiest rank; NaN if unknown.

        More than the threads of a rank: it had more of the machine than it says.
        """
        ratios = [
            math.fsum(rank.cpu_seconds[self.warmup_steps :]) / wall
            for rank in self.outcome.ranks
            if (wall := math.fsum(rank.wall_seconds[self.warmup_steps :])) > 0 and rank.cpu_seconds
        ]
        return max(ratios, default=math.nan)

    @property
    def samples_per_step(self) -> float:
        """Samples of all ranks in one step; an imported job may tell a number that ranks do not
        share evenly.
        """
        told = self.job.get("global_batch")
        return float(self.batch_per_rank * self.world_size if told is None else told)
