"""Result of reading a log: values with units, warnings, unread lines."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from paceline.step.layer_trace import TracedLayer


class RateUnit(StrEnum):
    """Unit that a rate counts."""

    SAMPLES = "samples"
    TOKENS = "tokens"
    STEPS = "steps"


class RateScope(StrEnum):
    """Scope of a rate: the whole job or one device."""

    GLOBAL = "global"
    PER_DEVICE = "per device"


@dataclass(frozen=True, slots=True)
class Rate:
    """A throughput with its unit, scope and source in the log.

    ``spread_per_second`` is the printed ±, as the program defines it; ``rounding_per_second`` is
    half a unit in the last printed digit.
    """

    per_second: float
    unit: RateUnit
    scope: RateScope
    source: str
    spread_per_second: float | None = None
    rounding_per_second: float = 0.0


@dataclass(frozen=True, slots=True)
class StepRecord:
    """Mean seconds per step over the ``count`` steps up to step ``index``.

    ``rank`` is None if the log does not distinguish ranks. ``warm_up`` marks steps that the program
    excludes from its own results. ``samples`` is the number of samples per step of the whole job,
    if the log states it per step.
    """

    index: int
    seconds: float
    count: int = 1
    rank: int | None = None
    warm_up: bool = False
    samples: float | None = None


def slowest_of_each_step(steps: Iterable[StepRecord]) -> list[StepRecord]:
    """The longest record of each step, in the order of steps."""
    slowest: dict[int, StepRecord] = {}
    for record in steps:
        known = slowest.get(record.index)
        if known is None or record.seconds > known.seconds:
            slowest[record.index] = record
    return [slowest[index] for index in sorted(slowest)]


@dataclass(frozen=True, slots=True)
class TimedCollective:
    """One measured collective: ``size_bytes`` in ``seconds``; bus bandwidth in bytes/s."""

    operation: str
    size_bytes: float
    seconds: float
    bus_bandwidth: float
    in_place: bool


@dataclass(frozen=True, slots=True)
class OperationTime:
    """Seconds per step of one operation, under the name that the program prints."""

    name: str
    seconds: float


@dataclass(frozen=True)
class ParsedLog:
    """All information of a log. Values that the log lacks are None or empty, never a default.

    ``ranks`` counts workers (devices with a replica or a shard), ``global_batch`` samples of all
    workers per step. ``phases`` are mean seconds per step; phases that are timed together have a
    joint name (``forward+backward``). ``unread_lines`` counts damaged and foreign lines.
    ``contradictions`` are inconsistent figures: such a log is not imported.
    """

    program: str
    version: str = ""
    model: str = ""
    ranks: int | None = None
    nodes: int | None = None
    global_batch: float | None = None
    sequence_length: int | None = None
    precision: str = ""
    steps: tuple[StepRecord, ...] = ()
    throughput: Rate | None = None
    phases: Mapping[str, float] = field(default_factory=dict)
    layers: tuple[TracedLayer, ...] = ()
    operations: tuple[OperationTime, ...] = ()
    collectives: tuple[TimedCollective, ...] = ()
    losses: tuple[tuple[int, float], ...] = ()
    facts: Mapping[str, str | float] = field(default_factory=dict)
    finished: bool = False
    lines: int = 0
    unread_lines: int = 0
    warnings: tuple[str, ...] = ()
    contradictions: tuple[str, ...] = ()

    @property
    def batch_per_rank(self) -> float | None:
        """Samples per rank and step; None if batch or ranks are unknown."""
        if self.global_batch is None or not self.ranks:
            return None
        return self.global_batch / self.ranks

    @property
    def timed_steps(self) -> list[StepRecord]:
        """Record of the slowest rank of each step, in order, without warm-up if possible.

        A synchronous step ends when its slowest rank ends.
        """
        records = slowest_of_each_step(self.steps)
        return [record for record in records if not record.warm_up] or records

    @property
    def step_seconds(self) -> float | None:
        """Mean seconds per step, every step counted once; None without timed steps."""
        records = self.timed_steps
        steps = sum(record.count for record in records)
        if not steps:
            return None
        return math.fsum(record.seconds * record.count for record in records) / steps

    @property
    def samples_per_step(self) -> float | None:
        """Mean samples per timed step; None unless the log states them for 90 % of the steps."""
        timed = self.timed_steps
        records = [record for record in timed if record.samples is not None]
        steps = sum(record.count for record in records)
        if not steps or steps < 0.9 * sum(record.count for record in timed):
            return None
        return math.fsum((record.samples or 0.0) * record.count for record in records) / steps
