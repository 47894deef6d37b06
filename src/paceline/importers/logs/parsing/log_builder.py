"""Collect the results of a reader in bounded memory and build a `ParsedLog`."""

import math
import statistics
from collections.abc import Sequence, Sized
from dataclasses import dataclass, field, fields, replace
from typing import Any

from paceline.importers.logs.parsing.agreement import disagreements, outside_all_steps
from paceline.importers.logs.parsing.log_lines import LogLine
from paceline.importers.logs.parsing.parsed_log import (
    OperationTime,
    ParsedLog,
    Rate,
    RateScope,
    RateUnit,
    StepRecord,
    TimedCollective,
    slowest_of_each_step,
)
from paceline.step.layer_trace import TracedLayer

MOST_RECORDS = 100_000
MOST_WARNINGS = 20
PAUSE = 5.0
"""A step longer than this multiple of the median includes evaluation or a checkpoint."""
DAMAGED = 0.9
"""Least share of steps that are not far too short, for these to be dropped."""
RANKED_PART = 0.2
"""Minimum share of lines with a rank prefix for ranks to be counted by prefixes."""


@dataclass
class LogBuilder:
    """A `ParsedLog` under construction; lists are limited to `MOST_RECORDS`, with a warning."""

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
    printing: set[int] = field(default_factory=set)
    ranked_lines: int = 0
    tasks: int = 0
    step_rounding_seconds: float = 0.0
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
        """Record an inconsistency; the log is then not imported."""
        self.warn(message)
        if message not in self.contradictions and len(self.contradictions) < MOST_WARNINGS:
            self.contradictions.append(message)

    def warn(self, message: str) -> None:
        if message not in self.warnings and len(self.warnings) < MOST_WARNINGS:
            self.warnings.append(message)

    def count_prefix(self, line: LogLine) -> None:
        """Count the rank or task of a line's prefix."""
        if line.rank is not None and line.is_task:
            self.tasks = max(line.rank + 1, self.tasks)
        elif line.rank is not None:
            if len(self.printing) < MOST_RECORDS:
                self.printing.add(line.rank)
            self.ranked_lines += 1

    def mean_step_seconds(self) -> float | None:
        """Mean seconds per step so far."""
        return self._parsed().step_seconds

    def step(
        self,
        index: int,
        seconds: float | None,
        count: int = 1,
        rank: int | None = None,
        warm_up: bool = False,
        samples: float | None = None,
    ) -> None:
        """Add one step record; invalid times are ignored."""
        if seconds is None or not 1 <= count <= 10**9:
            return
        if self._has_room(self.steps):
            self.steps.append(StepRecord(index, seconds, count, rank, warm_up, samples))

    def loss(self, index: int, value: float | None) -> None:
        if value is not None and self._has_room(self.losses):
            self.losses.append((index, value))

    def operation(self, name: str, seconds: float) -> None:
        if self._has_room(self.operations):
            self.operations.append(OperationTime(name, seconds))

    def collective(self, point: TimedCollective) -> None:
        if self._has_room(self.collectives):
            self.collectives.append(point)

    def layer(
        self,
        name: str,
        *,
        forward_seconds: float | None = None,
        backward_seconds: float | None = None,
    ) -> None:
        """Set the forward or backward time of a layer; layers keep the order of first mention."""
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
        """Set the throughput; invalid rates are ignored."""
        if per_second is not None and per_second > 0:
            self.throughput = Rate(per_second, unit, scope, source, spread_per_second)

    def printed_rate(
        self,
        per_second: float | None,
        source: str,
        unit: RateUnit = RateUnit.SAMPLES,
        scope: RateScope = RateScope.GLOBAL,
        rounding: float = 0.0,
    ) -> None:
        """Record a rate that the log prints, for comparison with the throughput.

        ``rounding`` is half a unit in its last printed digit.
        """
        if per_second is not None and per_second > 0:
            self.printed.append(Rate(per_second, unit, scope, source, rounding_per_second=rounding))

    def drop_pauses(self) -> None:
        """Drop single steps far from the median: pauses, and figures of damaged lines."""
        ordered = sorted(step.seconds for step in self.steps)
        usual = ordered[len(ordered) // 2] if len(ordered) > 2 else math.inf
        kept = [step for step in self.steps if step.warm_up or step.seconds <= PAUSE * usual]
        if len(kept) < len(self.steps):
            self.warn(
                f"dropped {len(self.steps) - len(kept)} of {len(self.steps)} steps longer than "
                f"{PAUSE:g} times the median (evaluation, checkpoint)"
            )
            self.steps = kept
        whole = [step for step in self.steps if step.seconds >= usual / PAUSE]
        if math.isfinite(usual) and DAMAGED * len(self.steps) < len(whole) < len(self.steps):
            self.warn(
                f"dropped {len(self.steps) - len(whole)} of {len(self.steps)} steps shorter than "
                f"1/{PAUSE:g} of the median (damaged lines)"
            )
            self.steps = whole

    def infer_batch(self, products: Sequence[tuple[float, float]]) -> None:
        """Infer the batch from samples per second x seconds per step of single lines.

        ``products`` are such values with their rounding. Only one integer may fit most of them.
        """
        known = self.global_batch or self.batch_per_rank or any(step.samples for step in self.steps)
        if known or not products:
            return
        middle = statistics.median(product for product, _ in products)
        rounding = statistics.median(error for _, error in products)
        batch = round(middle)
        fitting = sum(abs(product - batch) <= max(error, 0.5) for product, error in products)
        if batch >= 1 and rounding < 0.5 and fitting > 0.5 * len(products):
            self.global_batch = batch
            self.warn(f"batch of {batch:,} samples inferred from printed rates and times")

    def build(self) -> ParsedLog:
        """The finished log; throughput is computed from the steps if none was printed.

        The result is checked against every printed rate.
        """
        self.ranks = self.ranks or self.printing_ranks
        if self.tasks > 1:  # a Slurm task may run several ranks: tasks are no ranks
            self.facts["srun_tasks"] = float(self.tasks)
            self.steps = [replace(step, rank=None) for step in slowest_of_each_step(self.steps)]
        if self.global_batch is None and self.batch_per_rank is not None and self.ranks:
            self.global_batch = self.batch_per_rank * self.ranks
        if self.throughput is None and self.steps:
            self._count_samples()
            seconds = self._parsed().step_seconds
            if seconds and self.global_batch:
                self.rate(self.global_batch / seconds, "global batch over the mean step")
            elif seconds:
                self.rate(1 / seconds, "one over the mean step", RateUnit.STEPS)
        # A rate that contradicts the step times shows that one of them was misread.
        outside = outside_all_steps(self._parsed())
        for message in (
            *disagreements(self._parsed(), self.printed, self.step_rounding_seconds),
            *([outside] if outside else []),
        ):
            self.contradict(message)
        return self._parsed()

    @property
    def printing_ranks(self) -> int | None:
        """Number of ranks by line prefixes; None if too few lines have one.

        Many programs print on one rank only (Megatron-LM on the last), so one rank is no evidence.
        """
        enough = self.ranked_lines >= RANKED_PART * self.lines
        return max(self.printing) + 1 if len(self.printing) > 1 and enough else None

    def _count_samples(self) -> None:
        """Set the batch to the mean samples per step if the log counts samples per step."""
        mean = self._parsed().samples_per_step
        if mean is None:
            return
        sizes = [step.samples for step in self.steps if step.samples is not None]
        if max(sizes) > 1.01 * min(sizes):
            self.warn(
                f"samples per step vary from {min(sizes):,.4g} to {max(sizes):,.4g}; "
                f"using the mean, {mean:,.4g}"
            )
        self.global_batch = mean

    def _parsed(self) -> ParsedLog:
        found: dict[str, Any] = {own.name: getattr(self, own.name) for own in fields(ParsedLog)}
        found["layers"] = list(self.layers.values())
        for name, value in found.items():
            if isinstance(value, list | dict):
                found[name] = tuple(value) if isinstance(value, list) else dict(value)
        return ParsedLog(**found)

    def _has_room(self, records: Sized) -> bool:
        if len(records) < MOST_RECORDS:
            return True
        self._warn_full()
        return False

    def _warn_full(self) -> None:
        self.warn(f"more than {MOST_RECORDS:,} records: only the first {MOST_RECORDS:,} are used")
