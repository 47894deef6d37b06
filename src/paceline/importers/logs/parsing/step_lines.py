"""Shared parser of programs that print a line per step or per several steps.

Named groups of the pattern of a `StepLine`:

  step      number of the step; ``epoch`` if it restarts with each epoch
  seconds, ms, data   time per step; ``data`` is its input wait
  mean, data_mean   seconds per step, as the mean since the start of the epoch (or of the log)
  now       seconds of the last step alone, printed with ``mean``
  interval  seconds of all steps since the previous line
  elapsed, elapsed_ms   time since the start of training, if steps have no other time
  wall      seconds since the start, an upper limit of the sum of steps
  rate, tokens, steps_rate   samples, tokens, steps per second; ``*_each`` per device
  amount    tokens per step; the step time is ``amount`` divided by ``tokens``
  batch, each     samples per step, of the whole job and per device
  consumed  samples since the start
  seen      samples since the start of the epoch, instead of ``step``; the first line is one step
  loss      of the step
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from paceline.importers.logs.parsing.agreement import agree, devices, mean_rate
from paceline.importers.logs.parsing.line_clock import IMPOSSIBLE, LineClock, stamp
from paceline.importers.logs.parsing.log_builder import MOST_RECORDS
from paceline.importers.logs.parsing.log_lines import LogLine
from paceline.importers.logs.parsing.log_reader import LineParser, LineRule, ProgramReader
from paceline.importers.logs.parsing.parsed_log import RateScope, RateUnit
from paceline.importers.logs.parsing.printed_numbers import (
    count,
    duration,
    finite,
    half_unit,
    positive,
)
from paceline.importers.logs.parsing.step_cursor import MeanLine, StepCursor, TimedSteps

Apply: TypeAlias = Callable[[re.Match[str], LogLine], None]
_Rates: TypeAlias = dict[str, list[tuple[float, float]]]
RATES: Mapping[str, tuple[RateUnit, RateScope]] = {
    "rate": (RateUnit.SAMPLES, RateScope.GLOBAL),
    "rate_each": (RateUnit.SAMPLES, RateScope.PER_DEVICE),
    "tokens": (RateUnit.TOKENS, RateScope.GLOBAL),
    "tokens_each": (RateUnit.TOKENS, RateScope.PER_DEVICE),
    "steps_rate": (RateUnit.STEPS, RateScope.GLOBAL),
}


@dataclass(frozen=True)
class StepLine:
    """Format of a step line.

    ``first`` is the number of the first step. With ``averages`` the time of a line is the mean of
    the steps since the previous line, otherwise that of its own step alone.
    """

    needle: str
    pattern: re.Pattern[str]
    first: int = 1
    averages: bool = True


@dataclass(frozen=True)
class SettingLine:
    """A line about the job: ``ranks``, ``global_batch``, ``model``, any fact."""

    name: str
    pattern: re.Pattern[str]


@dataclass(frozen=True)
class StepLog:
    """Format of a log: lines of steps, settings and the end; marks to recognise it.

    With ``own_rates`` each rank prints its own samples per second.
    """

    program: str
    title: str
    marks: tuple[tuple[str, float], ...]
    steps: tuple[StepLine, ...]
    settings: tuple[SettingLine, ...] = ()
    finished: re.Pattern[str] | None = None
    ignored: re.Pattern[str] = field(default=re.compile(r".*"))
    own_rates: bool = False

    @property
    def reader(self) -> ProgramReader:
        return ProgramReader(self.program, self.title, self.marks, lambda: StepLineParser(self))


_NUMBERS = ("ranks", "nodes", "global_batch", "batch_per_rank", "sequence_length")


class StepLineParser(LineParser):
    """State of one log of steps."""

    def __init__(self, program: StepLog) -> None:
        self.program = program.program
        super().__init__()
        self.ignored = program.ignored
        self._rates: _Rates = {}
        self._first_rates: _Rates = {}
        self._roundings: dict[str, float] = {}
        self._phases: list[tuple[float, float]] = []
        self._batches: list[float] = []
        self._before: dict[int | None, StepCursor] = {}
        self._wall, self._stamps = LineClock(), LineClock()
        self._begun_at = 0
        self._own_rates = program.own_rates
        self._times_single_steps = not all(step.averages for step in program.steps)
        self.rules = (
            *(LineRule(step.needle, step.pattern, self._taker(step)) for step in program.steps),
            *(
                LineRule("", setting.pattern, self._setter(setting.name))
                for setting in program.settings
            ),
            *((LineRule("", program.finished, self.end),) if program.finished else ()),
        )

    def finish(self) -> None:
        """Use the mean of each printed rate as throughput, or check the throughput against it."""
        log = self.log
        self._check_batches()
        if self._times_single_steps:
            log.drop_pauses()
        for message in filter(None, (self._wall.too_short(), self._stamps.too_short(IMPOSSIBLE))):
            log.contradict(message)
        for message in filter(None, (self._stamps.too_short(), self._stamps.too_long)):
            log.warn(message)
        tokens = log.facts.get("tokens_per_step")
        if log.global_batch is None and log.sequence_length and isinstance(tokens, float):
            log.global_batch = tokens / log.sequence_length
        if self._phases and log.steps:
            steps = sum(weight for _, weight in self._phases)
            waited = sum(seconds * weight for seconds, weight in self._phases) / steps
            log.phases["input"] = waited
        rates = self._first_rates | self._rates
        if log.ranks is None:
            log.ranks = devices(rates, "tokens") or devices(rates, "rate")
        for name, pairs in rates.items():
            unit, scope = RATES[name]
            mean = mean_rate(pairs)
            if mean and name == "rate" and self._own_rates:
                mean *= len(self._before) or 1
            source = f"mean of the printed {unit}/s"
            if name == "rate" and mean:
                log.derive_batch(mean)
            if log.steps:
                log.printed_rate(mean, source, unit, scope, self._roundings.get(name, 0.0))
            elif log.throughput is None or unit is RateUnit.SAMPLES:
                log.rate(mean, source, unit, scope)

    def _taker(self, line: StepLine) -> Apply:
        def take(match: re.Match[str], text: LogLine) -> None:
            self._take(line, {k: v for k, v in match.groupdict().items() if v}, text)

        return take

    def _take(self, line: StepLine, found: dict[str, str], text: LogLine) -> None:
        cursor = self._before.get(text.rank) or StepCursor(line.first, begun_at=self._begun_at)
        epoch = count(found.get("epoch", ""))
        number = self._number(found, cursor, epoch)
        if number is None:
            return
        index, done = cursor.advanced(number, epoch, "mean" in found)
        if done < 1 or (text.rank not in self._before and len(self._before) >= MOST_RECORDS):
            return
        self._before[text.rank] = cursor
        timed = self._timed(line, found, cursor, done)
        samples = self._samples_of(found, cursor, done)
        self.log.loss(index, finite(found.get("loss", "")))
        self._check_clocks(found, text, timed)
        if timed is None and "mean" in found:
            return
        steps = timed.steps if timed else done if line.averages else 1
        is_first = not cursor.timed and index == done
        seconds = timed.seconds if timed else None
        self.log.step(index, seconds, steps, text.rank, warm_up=is_first, samples=samples)
        cursor.timed = cursor.timed or seconds is not None
        rates = self._first_rates if is_first else self._rates
        self._keep_rates(rates, found, steps * (samples or 1.0))
        data = duration(found.get("data", ""))
        if timed is not None and timed.data is not None:
            data = max(0.0, timed.data)
        if data is not None and not is_first and len(self._phases) < MOST_RECORDS:
            self._phases.append((data, steps))

    def _number(self, found: dict[str, str], cursor: StepCursor, epoch: int | None) -> int | None:
        """Step number of the line, computed from samples if it counts samples."""
        if "seen" not in found:
            return count(found.get("step", "").split(".")[0])
        seen = count(found["seen"])
        number = cursor.steps_of(seen, epoch)
        if seen and seen % cursor.batch:
            self.log.contradict(
                f"{seen:,} samples is not a multiple of the {cursor.batch:,} in the first line: "
                "the log starts in the middle of an epoch"
            )
        return number

    def _timed(
        self, line: StepLine, found: dict[str, str], cursor: StepCursor, done: int
    ) -> TimedSteps | None:
        """Seconds per step, and the number of steps that the line covers."""
        if "mean" in found:
            means = MeanLine(found["mean"], found.get("now", ""), found.get("data_mean", ""))
            if cursor.runs_on and done > 1:
                self.log.contradict("running means do not restart with the epoch")
            return cursor.since_before(means)
        steps = done if line.averages else 1
        seconds = _seconds(found, done)
        for name, unit in (("ms", 1e-3), ("seconds", 1.0), ("interval", 1 / done)):
            rounding = unit * half_unit(found[name]) if name in found else 0.0
            self.log.step_rounding_seconds = max(rounding, self.log.step_rounding_seconds)
        if "elapsed_ms" in found:
            seconds = cursor.since_clock(duration(found["elapsed_ms"], 1e-3), done)
        elif "elapsed" in found:
            seconds = cursor.since_clock(duration(found["elapsed"]), done)
        return None if seconds is None else TimedSteps(seconds, steps)

    def _samples_of(self, found: dict[str, str], cursor: StepCursor, done: int) -> float | None:
        samples = _samples(found, cursor, done, self.log.ranks)
        if "seen" in found and "tokens" not in found:
            samples = float(cursor.batch)
        return self._of_means(found) if "mean" in found else samples

    def _check_clocks(self, found: dict[str, str], text: LogLine, timed: TimedSteps | None) -> None:
        """Compare step times with the clock and the time stamp of the line."""
        if text.rank not in (None, 0) or "elapsed" in found or "elapsed_ms" in found:
            return
        seconds, steps = (timed.seconds, timed.steps) if timed else (None, 0)
        if timed is None and "mean" in found:
            return
        self._wall.add(finite(found.get("wall", "")), seconds, steps)
        self._stamps.add(stamp(text.text), seconds, steps)

    def _keep_rates(self, rates: _Rates, found: dict[str, str], amount: float) -> None:
        for name in RATES if "mean" not in found else ():
            value = positive(found.get(name, ""))
            pairs = rates.setdefault(name, []) if value else []
            if value and len(pairs) < MOST_RECORDS:
                pairs.append((amount, value))
                rounding = half_unit(found[name])
                self._roundings[name] = max(rounding, self._roundings.get(name, 0.0))

    def _of_means(self, found: Mapping[str, str]) -> float | None:
        """Samples per step as mean rate times mean seconds per step."""
        rate, seconds = positive(found.get("rate", "")), duration(found["mean"])
        if rate is None or seconds is None:
            return None
        samples = rate * seconds
        if len(self._batches) < MOST_RECORDS:
            self._batches.append(samples)
        return float(round(samples)) if agree(samples, round(samples)) else samples

    def _check_batches(self) -> None:
        """Check the batch in the settings against rate times seconds of the lines."""
        log = self.log
        stated = log.batch_per_rank * (log.ranks or 1) if log.batch_per_rank else None
        middle = sorted(self._batches)[len(self._batches) // 2] if self._batches else None
        if stated and middle and not agree(stated, middle):
            log.contradict(
                f"the settings state {stated:,.4g} samples per step, but printed rates and times "
                f"give {middle:,.4g}"
            )

    def _setter(self, name: str) -> Apply:
        def keep(match: re.Match[str], line: LogLine) -> None:
            value = count(match[1])
            if name == "begun_at":
                self._begin_at(value or 0)
            elif name in _NUMBERS:
                setattr(self.log, name, value or getattr(self.log, name))
            elif name in ("model", "precision", "version"):
                setattr(self.log, name, match[1][:100])
            else:
                self.log.facts[name] = match[1][:100] if value is None else float(value)

        return keep

    def _begin_at(self, number: int) -> None:
        """Restart at this step: a resumed run averages from there."""
        self._begun_at = number
        self._before.clear()


def _seconds(found: Mapping[str, str], done: int) -> float | None:
    if "ms" in found:
        return duration(found["ms"], 1e-3)
    if "interval" in found:
        return duration(found["interval"], 1 / done)
    if "amount" in found:
        amount, rate = positive(found["amount"]), positive(found.get("tokens", ""))
        return amount / rate if amount and rate else None
    return duration(found.get("seconds", ""))


def _samples(
    found: Mapping[str, str], cursor: StepCursor, done: int, ranks: int | None
) -> float | None:
    """Samples per step; the consumed samples take precedence over the printed batch."""
    stated = positive(found.get("batch", ""))
    each = positive(found.get("each", ""))
    if stated is None and each is not None and ranks:
        stated = each * ranks
    consumed, before = positive(found.get("consumed", "")), cursor.consumed
    cursor.consumed = consumed
    if consumed is not None and before is not None and consumed > before:
        counted = (consumed - before) / done
        return stated if stated is not None and agree(stated, counted) else counted
    return stated
