"""The launch: one start of a training job, and the unit of replication of all statistics."""

import math
import secrets
import time
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from paceline.step import Step

UNSTABLE = "unstable"
"""Value of the fact ``steadiness`` of a launch without a steady level."""


class Status(StrEnum):
    """Status of a launch; only finished ones count in results."""

    RUNNING = "running"
    FINISHED = "finished"
    FAILED = "failed"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True)
class RankSteps:
    """Step times of one rank in order, including warm-up (seconds).

    ``delay_seconds`` is the time that the training thread was runnable without a core; unknown for
    older launches and on some systems.
    """

    rank: int
    wall_seconds: tuple[float, ...]
    cpu_seconds: tuple[float, ...] = ()
    losses: tuple[float, ...] = ()
    delay_seconds: tuple[float, ...] = ()


@dataclass(frozen=True)
class LayerTiming:
    """Median forward and backward seconds of one layer, and its gradient bytes."""

    name: str
    forward_seconds: float
    backward_seconds: float
    gradient_bytes: float


@dataclass(frozen=True)
class Outcome:
    """Outcome of a launch: times, timeline, layers, facts.

    ``reason`` is one line for users if the status is not finished. ``facts`` holds data reported by
    the ranks (versions, exit codes, load average before and after).
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
    """One launch: its settings (``job``), its machine (``environment``) and its outcome.

    ``batch_per_rank`` is the number of samples per rank and step; ``world_size`` the number of
    ranks. ``instrument`` is ``none`` for plain launches, whose times count as throughput.
    ``provenance`` is ``measured`` or ``imported``.
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
        return self.outcome.status

    @property
    def is_steady(self) -> bool:
        """Whether it may be averaged: False if warm-up detection found no steady level."""
        return self.outcome.facts.get("steadiness") != UNSTABLE

    @property
    def cores_used(self) -> float:
        """CPU time over wall time of the counted steps on the busiest rank; NaN if unknown.

        More than the number of threads per rank means that a rank used additional threads.
        """
        ratios = [
            math.fsum(rank.cpu_seconds[self.warmup_steps :]) / wall
            for rank in self.outcome.ranks
            if (wall := math.fsum(rank.wall_seconds[self.warmup_steps :])) > 0 and rank.cpu_seconds
        ]
        return max(ratios, default=math.nan)

    @property
    def counted_seconds(self) -> float:
        """Wall seconds of all counted steps together; 0 without counted steps.

        The ranks of a user's script (`paceline run`, `paceline.record`) are not aligned at steps:
        different ranks are late in different steps, and the sum over the slowest rank of each step
        exceeds the elapsed time. Their steps follow each other without gaps, so the largest sum of
        one rank is the elapsed time. For all other launches the slowest rank of each step counts.
        """
        ranks = [rank.wall_seconds[self.warmup_steps :] for rank in self.outcome.ranks]
        if "command" in self.job or self.job.get("recorded"):
            return max((math.fsum(rank) for rank in ranks), default=0.0)
        return math.fsum(max(step) for step in zip(*ranks, strict=False))

    @property
    def samples_per_step(self) -> float:
        """Samples of all ranks in one step; an imported job may have a number that is not a
        multiple of its ranks.
        """
        global_batch = self.job.get("global_batch")
        return float(
            self.batch_per_rank * self.world_size if global_batch is None else global_batch
        )


def new_launch_id() -> str:
    """Sortable id: the time in milliseconds, then four random characters, in hexadecimal."""
    return f"{time.time_ns() // 1_000_000:011x}{secrets.token_hex(2)}"
