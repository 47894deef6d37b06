"""What a reader makes of a program's log: values with their units, and what it could not read."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from paceline.step.layer_trace import TracedLayer


class RateUnit(StrEnum):
    """What a rate counts."""

    SAMPLES = "samples"
    TOKENS = "tokens"
    STEPS = "steps"


class RateScope(StrEnum):
    """Whose rate it is: the whole job's, or one device's."""

    GLOBAL = "global"
    PER_DEVICE = "per device"


@dataclass(frozen=True, slots=True)
class Rate:
    """A throughput with what it counts, whose it is and where the log says it.

    ``spread_per_second`` is the ± that the program prints beside it, as it defines it.
    """

    per_second: float
    unit: RateUnit
    scope: RateScope
    source: str
    spread_per_second: float | None = None


@dataclass(frozen=True, slots=True)
class StepRecord:
    """Mean seconds per step over ``count`` steps that end with the step called ``index``.

    ``rank`` is None where the log does not tell ranks apart. ``warm_up`` marks steps that the
    program itself leaves out of its figures. ``samples`` is what the whole job did in each of
    them, where the log says it step by step.
    """

    index: int
    seconds: float
    count: int = 1
    rank: int | None = None
    warm_up: bool = False
    samples: float | None = None


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
    """Seconds per step of one operation as the program calls it."""

    name: str
    seconds: float


@dataclass(frozen=True)
class ParsedLog:
    """Everything a log told. A value that it did not tell is None or empty, never a default.

    ``ranks`` counts workers (devices that hold a replica or a part of one), ``global_batch``
    samples of all of them per step. ``phases`` are mean seconds per step; a program that times
    two together has them joined (``forward+backward``). ``unread_lines`` counts lines that are
    not the program's, or are damaged. ``contradictions`` are figures of the log that cannot both
    be right: nothing of such a log is stored.
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
        """Samples of one rank per step; None when batch or ranks are not known."""
        if self.global_batch is None or not self.ranks:
            return None
        return self.global_batch / self.ranks

    @property
    def timed_steps(self) -> list[StepRecord]:
        """The slowest rank's record of each step, in order, warm-up left out if anything is left.

        A synchronous step ends with its slowest rank, so that rank's time is the step's.
        """
        slowest: dict[int, StepRecord] = {}
        for record in self.steps:
            known = slowest.get(record.index)
            if known is None or record.seconds > known.seconds:
                slowest[record.index] = record
        records = [slowest[index] for index in sorted(slowest)]
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
        """Mean samples of a timed step; None unless the log counts them for nine of ten."""
        timed = self.timed_steps
        records = [one for one in timed if one.samples is not None]
        steps = sum(one.count for one in records)
        if not steps or steps < 0.9 * sum(one.count for one in timed):
            return None
        return math.fsum((one.samples or 0.0) * one.count for one in records) / steps
