"""Collects what a reader finds, within bounds, and closes it into a `ParsedLog`."""

import math
from collections.abc import Sized
from dataclasses import dataclass, field

from paceline.measurement.readers.agreement import agree, disagreements, outside_all_steps
from paceline.measurement.readers.parsed_log import (
    OperationTime,
    ParsedLog,
    Rate,
    RateScope,
    RateUnit,
    StepRecord,
    TimedCollective,
)
from paceline.step.layer_trace import TracedLayer

MOST_RECORDS = 100_000
MOST_WARNINGS = 20
PAUSE = 5.0
"""A single step that took so many times as long as usual holds something else."""
RANKED_PART = 0.2
"""Part of the lines that must name a rank for the highest one to tell how many there are."""


@dataclass
class LogBuilder:
    """A `ParsedLog` being read. Lists stop growing at `MOST_RECORDS`, which a warning tells."""

    program: str
    version: str = ""
    model: str = ""
    ranks: int | None = None
    nodes: int | None = None
    global_batch: float | None = None
    batch_per_rank: float | None = None
    sequence_length: int | None = None
    precision: str = ""
    throughput: Rate | None = None
    finished: bool = False
    lines: int = 0
    unread_lines: int = 0
    highest_rank: int | None = None
    ranked_lines: int = 0
    phases: dict[str, float] = field(default_factory=dict)
    facts: dict[str, str | float] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    operations: list[OperationTime] = field(default_factory=list)
    collectives: list[TimedCollective] = field(default_factory=list)
    losses: list[tuple[int, float]] = field(default_factory=list)
    steps: list[StepRecord] = field(default_factory=list)
    layers: dict[str, TracedLayer] = field(default_factory=dict)
    printed: list[Rate] = field(default_factory=list)
    contradictions: list[str] = field(default_factory=list)

    def contradict(self, message: str) -> None:
        """Remember that figures of the log cannot both be right."""
        self.warn(message)
        if message not in self.contradictions and len(self.contradictions) < MOST_WARNINGS:
            self.contradictions.append(message)

    def warn(self, message: str) -> None:
        """Remember a warning once."""
        if message not in self.warnings and len(self.warnings) < MOST_WARNINGS:
            self.warnings.append(message)

    def step(
        self,
        index: int,
        seconds: float | None,
        count: int = 1,
        rank: int | None = None,
        warm_up: bool = False,
        samples: float | None = None,
    ) -> None:
        """Add one step record; a time that cannot be is left out."""
        if seconds is None or not 1 <= count <= 10**9:
            return
        if self._has_room(self.steps):
            self.steps.append(StepRecord(index, seconds, count, rank, warm_up, samples))

    def loss(self, index: int, value: float | None) -> None:
        """Add the loss of a step."""
        if value is not None and self._has_room(self.losses):
            self.losses.append((index, value))

    def operation(self, name: str, seconds: float) -> None:
        """Add one operation's time per step."""
        if self._has_room(self.operations):
            self.operations.append(OperationTime(name, seconds))

    def collective(self, point: TimedCollective) -> None:
        """Add one measured collective."""
        if self._has_room(self.collectives):
            self.collectives.append(point)

    def layer(
        self,
        name: str,
        *,
        forward_seconds: float | None = None,
        backward_seconds: float | None = None,
    ) -> None:
        """Set the forward or backward time of a layer; the first mention decides its place."""
        known = self.layers.get(name)
        if known is None:
            if len(self.layers) >= MOST_RECORDS:
                self._warn_full()
                return
            known = TracedLayer(name, 0.0, 0.0)
        self.layers[name] = TracedLayer(
            name,
            known.forward_seconds if forward_seconds is None else forward_seconds,
            known.backward_seconds if backward_seconds is None else backward_seconds,
        )

    def rate(
        self,
        per_second: float | None,
        source: str,
        unit: RateUnit = RateUnit.SAMPLES,
        scope: RateScope = RateScope.GLOBAL,
        spread_per_second: float | None = None,
    ) -> None:
        """Set the throughput; nothing happens for a rate that cannot be."""
        if per_second is not None and per_second > 0:
            self.throughput = Rate(per_second, unit, scope, source, spread_per_second)

    def prints(
        self,
        per_second: float | None,
        source: str,
        unit: RateUnit = RateUnit.SAMPLES,
        scope: RateScope = RateScope.GLOBAL,
    ) -> None:
        """Note a rate that the log prints beside its steps; the throughput is held against it."""
        if per_second is not None and per_second > 0:
            self.printed.append(Rate(per_second, unit, scope, source))

    def drop_pauses(self) -> None:
        """Leave out single steps that took much longer than usual: something else is in them."""
        ordered = sorted(one.seconds for one in self.steps)
        usual = ordered[len(ordered) // 2] if len(ordered) > 2 else math.inf
        kept = [one for one in self.steps if one.warm_up or one.seconds <= PAUSE * usual]
        if len(kept) < len(self.steps):
            self.warn(
                f"{len(self.steps) - len(kept)} steps that took more than {PAUSE:g} times as long "
                "as usual (evaluation, checkpoint) are left out"
            )
            self.steps = kept

    def derive_batch(self, per_second: float) -> None:
        """Samples of a step, where a log prints both its rate and its seconds and nothing more."""
        told = self.global_batch or self.batch_per_rank or any(one.samples for one in self.steps)
        seconds = self._parsed().step_seconds
        if told or not seconds:
            return
        batch = round(per_second * seconds)
        if batch >= 1 and agree(batch, per_second * seconds):
            self.global_batch = batch
            self.warn(f"{batch:,} samples per step follow from printed rates and times")

    def build(self) -> ParsedLog:
        """The finished log, with throughput worked out from the steps where none was printed.

        What was worked out and every rate that was printed must agree.
        """
        self.ranks = self.ranks or self.printing_ranks
        if self.global_batch is None and self.batch_per_rank is not None and self.ranks:
            self.global_batch = self.batch_per_rank * self.ranks
        if self.throughput is None and self.steps:
            self._count_samples()
            seconds = self._parsed().step_seconds
            if seconds and self.global_batch:
                self.rate(self.global_batch / seconds, "global batch over the mean step")
            elif seconds:
                self.rate(1 / seconds, "one over the mean step", RateUnit.STEPS)
        outside = outside_all_steps(self._parsed())
        for message in (
            *disagreements(self._parsed(), self.printed),
            *([outside] if outside else []),
        ):
            self.contradict(message)
        return self._parsed()

    @property
    def printing_ranks(self) -> int | None:
        """Ranks by the prefixes of lines; None where too few lines have one to be meant so.

        Rank 0 alone tells nothing, since launchers often let only that one speak.
        """
        meant = self.highest_rank and self.ranked_lines >= RANKED_PART * self.lines
        return self.highest_rank + 1 if self.highest_rank and meant else None

    def _count_samples(self) -> None:
        """Mean samples per step, where the log counts them step by step."""
        mean = self._parsed().samples_per_step
        if mean is None:
            return
        sizes = [one.samples for one in self.steps if one.samples is not None]
        if max(sizes) > 1.01 * min(sizes):
            self.warn(
                f"samples per step vary from {min(sizes):,.4g} to {max(sizes):,.4g}; "
                f"{mean:,.4g} is their mean"
            )
        self.global_batch = mean

    def _parsed(self) -> ParsedLog:
        return ParsedLog(
            program=self.program,
            version=self.version,
            model=self.model,
            ranks=self.ranks,
            nodes=self.nodes,
            global_batch=self.global_batch,
            sequence_length=self.sequence_length,
            precision=self.precision,
            steps=tuple(self.steps),
            throughput=self.throughput,
            phases=dict(self.phases),
            layers=tuple(self.layers.values()),
            operations=tuple(self.operations),
            collectives=tuple(self.collectives),
            losses=tuple(self.losses),
            facts=dict(self.facts),
            finished=self.finished,
            lines=self.lines,
            unread_lines=self.unread_lines,
            warnings=tuple(self.warnings),
            contradictions=tuple(self.contradictions),
        )

    def _has_room(self, records: Sized) -> bool:
        if len(records) < MOST_RECORDS:
            return True
        self._warn_full()
        return False

    def _warn_full(self) -> None:
        self.warn(f"more than {MOST_RECORDS:,} records; only the first are kept")
