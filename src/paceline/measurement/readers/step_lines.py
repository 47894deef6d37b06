"""Programs that print a line per step or per few steps: one parser, and a table of what they print.

A `StepLine` says with named groups what a line holds:

  step      number of the step; ``epoch`` where it starts again at each
  seconds, ms, data   of a step; ``data`` is the part that waited for input
  mean      seconds of a step, as the mean since the beginning of the epoch (or of the log)
  interval  seconds of all steps since the line before
  elapsed_ms   since the beginning of training
  rate, tokens, steps_rate   per second; ``*_each`` of one device
  amount    tokens of a step, where its time is that over ``tokens``
  batch, each     samples of a step, of the whole job and of one device
  consumed  samples since the beginning
  seen      samples since the beginning of the epoch, in place of ``step``: its first line is a step
  loss      of the step
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from paceline.measurement.readers.agreement import agree, mean_rate
from paceline.measurement.readers.builder import MOST_RECORDS
from paceline.measurement.readers.lines import LogLine
from paceline.measurement.readers.numbers import count, duration, finite, positive
from paceline.measurement.readers.parsed_log import RateScope, RateUnit
from paceline.measurement.readers.reader import LineParser, LineRule, ProgramReader

Apply: TypeAlias = Callable[[re.Match[str], LogLine], None]
RATES: Mapping[str, tuple[RateUnit, RateScope]] = {
    "rate": (RateUnit.SAMPLES, RateScope.GLOBAL),
    "rate_each": (RateUnit.SAMPLES, RateScope.PER_DEVICE),
    "tokens": (RateUnit.TOKENS, RateScope.GLOBAL),
    "tokens_each": (RateUnit.TOKENS, RateScope.PER_DEVICE),
    "steps_rate": (RateUnit.STEPS, RateScope.GLOBAL),
}


@dataclass(frozen=True)
class StepLine:
    """How a program writes a step.

    ``first`` is the number of its first step. ``averages`` says that a line's time is the mean
    of the steps since the line before it, and not that of its own step alone.
    """

    needle: str
    pattern: re.Pattern[str]
    first: int = 1
    averages: bool = True


@dataclass(frozen=True)
class SettingLine:
    """A line that tells about the job: ``ranks``, ``global_batch``, ``model``, a fact, ..."""

    name: str
    pattern: re.Pattern[str]


@dataclass(frozen=True)
class StepLog:
    """A program's lines: its steps, its settings and how it ends; and the marks it is known by."""

    program: str
    title: str
    marks: tuple[tuple[str, float], ...]
    steps: tuple[StepLine, ...]
    settings: tuple[SettingLine, ...] = ()
    finished: re.Pattern[str] | None = None
    ignored: re.Pattern[str] = field(default=re.compile(r".*"))

    @property
    def reader(self) -> ProgramReader:
        """The reader of these lines."""
        return ProgramReader(self.program, self.title, self.marks, lambda: StepLineParser(self))


_NUMBERS = ("ranks", "nodes", "global_batch", "batch_per_rank", "sequence_length")


class StepLineParser(LineParser):
    """State of one such log."""

    def __init__(self, program: StepLog) -> None:
        self.program = program.program
        super().__init__()
        self.ignored = program.ignored
        self._rates: dict[str, list[tuple[float, float]]] = {}
        self._phases: list[tuple[float, float]] = []
        self._batches: list[float] = []
        self._before: dict[int | None, _Place] = {}
        self.rules = (
            *(LineRule(one.needle, one.pattern, self._taker(one)) for one in program.steps),
            *(LineRule("", one.pattern, self._setter(one.name)) for one in program.settings),
            *((LineRule("", program.finished, self._finished),) if program.finished else ()),
        )

    def finish(self) -> None:
        """The mean of each rate that was printed: the throughput, or what it is held against."""
        log = self.log
        self._check_batches()
        tokens = log.facts.get("tokens_per_step")
        if log.global_batch is None and log.sequence_length and isinstance(tokens, float):
            log.global_batch = tokens / log.sequence_length
        if self._phases and log.steps:
            steps = sum(weight for _, weight in self._phases)
            waited = sum(seconds * weight for seconds, weight in self._phases) / steps
            log.phases["input"] = waited
        for name, pairs in self._rates.items():
            unit, scope = RATES[name]
            mean = mean_rate(pairs)
            source = f"mean of the printed {unit}/s"
            if log.steps:
                log.prints(mean, source, unit, scope)
            elif log.throughput is None or unit is RateUnit.SAMPLES:
                log.rate(mean, source, unit, scope)

    def _taker(self, line: StepLine) -> Apply:
        def take(match: re.Match[str], text: LogLine) -> None:
            self._take(line, {k: v for k, v in match.groupdict().items() if v}, text.rank)

        return take

    def _take(self, line: StepLine, found: dict[str, str], rank: int | None) -> None:
        place = self._before.get(rank) or _Place(line.first - 1)
        epoch = count(found.get("epoch", ""))
        number = count(found.get("step", "").split(".")[0])
        if "seen" in found:
            seen = count(found["seen"])
            number = place.steps_of(seen, epoch)
            if seen and seen % place.batch:
                self.log.contradict(
                    f"{seen:,} samples are no multiple of the first line's {place.batch:,}: "
                    "the log begins in the middle of an epoch"
                )
        if number is None:
            return
        index, done = place.advanced(number, epoch, line.first)
        if done < 1 or (rank not in self._before and len(self._before) >= MOST_RECORDS):
            return
        self._before[rank] = place
        steps = done if line.averages else 1
        seconds = _seconds(found, done)
        if "mean" in found:
            seconds, steps = place.since_before(duration(found["mean"]), done), done
        if "elapsed_ms" in found:
            seconds = place.since_clock(duration(found["elapsed_ms"], 1e-3), done)
        samples = _samples(found, place, done, self.log.ranks)
        if "seen" in found and "tokens" not in found:
            samples = float(place.batch)
        if "mean" in found:
            samples = self._of_means(found)
        self.log.loss(index, finite(found.get("loss", "")))
        is_first = index == done and not place.timed
        self.log.step(index, seconds, steps, rank, warm_up=is_first, samples=samples)
        if seconds is not None:
            place.timed = True
        if is_first:
            return
        data = duration(found.get("data", ""))
        if data is not None and len(self._phases) < MOST_RECORDS:
            self._phases.append((data, steps))
        for name in RATES if "mean" not in found else ():
            value = positive(found.get(name, ""))
            pairs = self._rates.setdefault(name, []) if value else []
            if value and len(pairs) < MOST_RECORDS:
                pairs.append((steps * (samples or 1.0), value))

    def _of_means(self, found: Mapping[str, str]) -> float | None:
        """Samples of a step, where the line gives the mean rate and the mean seconds of a step."""
        rate, seconds = positive(found.get("rate", "")), duration(found["mean"])
        if rate is None or seconds is None:
            return None
        samples = rate * seconds
        if len(self._batches) < MOST_RECORDS:
            self._batches.append(samples)
        return float(round(samples)) if agree(samples, round(samples)) else samples

    def _check_batches(self) -> None:
        """Rate times seconds of every line must be the batch that the settings name."""
        log = self.log
        stated = log.batch_per_rank * (log.ranks or 1) if log.batch_per_rank else None
        middle = sorted(self._batches)[len(self._batches) // 2] if self._batches else None
        if stated and middle and not agree(stated, middle):
            log.contradict(
                f"the settings say {stated:,.4g} samples per step, but the rates and times of the "
                f"lines give {middle:,.4g}"
            )

    def _setter(self, name: str) -> Apply:
        def keep(match: re.Match[str], line: LogLine) -> None:
            value = count(match[1])
            if name in _NUMBERS:
                setattr(self.log, name, value or getattr(self.log, name))
            elif name in ("model", "precision", "version"):
                setattr(self.log, name, match[1][:100])
            else:
                self.log.facts[name] = match[1][:100] if value is None else float(value)

        return keep

    def _finished(self, match: re.Match[str], line: LogLine) -> None:
        self.log.finished = True


@dataclass
class _Place:
    """Where one rank is in its log."""

    number: int
    epoch: int | None = None
    index: int = 0
    consumed: float | None = None
    mean_total: float = 0.0
    mean_steps: int = 0
    clock: float | None = None
    batch: int = 0
    timed: bool = False

    def steps_of(self, seen: int | None, epoch: int | None) -> int | None:
        """Steps that so many samples of the epoch are, by what its first line has seen."""
        if seen and (not self.batch or epoch != self.epoch):
            self.batch = seen
        return round(seen / self.batch) if seen and self.batch else None

    def advanced(self, number: int, epoch: int | None, first: int) -> tuple[int, int]:
        """Steps up to this line and steps since the line before it."""
        if epoch != self.epoch or number < self.number:
            started_later = self.epoch is None and epoch is None and self.index == 0
            if self.index or not started_later:
                self.number, self.mean_total, self.mean_steps = first - 1, 0.0, 0
            self.epoch = epoch
        if self.index == 0 and number > 10 * first + 1000:
            self.number = number - 1  # the log begins in the middle
        done = number - self.number
        self.number, self.index = number, self.index + max(0, done)
        return self.index, done

    def since_before(self, mean: float | None, done: int) -> float | None:
        """Seconds of the steps since the line before, from means since the beginning."""
        if mean is None:
            return None
        steps = self.mean_steps + done
        total, before = mean * steps, self.mean_total
        self.mean_total, self.mean_steps = total, steps
        return (total - before) / done if total > before else None

    def since_clock(self, clock: float | None, done: int) -> float | None:
        """Seconds of a step since the line before, by a clock that may be set back."""
        before, self.clock = self.clock, clock
        if clock is None or before is None or clock <= before:
            return None
        return (clock - before) / done


def _seconds(found: Mapping[str, str], done: int) -> float | None:
    if "ms" in found:
        return duration(found["ms"], 1e-3)
    if "interval" in found:
        return duration(found["interval"], 1 / done)
    if "amount" in found:
        amount, rate = positive(found["amount"]), positive(found.get("tokens", ""))
        return amount / rate if amount and rate else None
    return duration(found.get("seconds", ""))


def _samples(found: Mapping[str, str], place: _Place, done: int, ranks: int | None) -> float | None:
    """Samples of a step, as the line says it; what it consumed since the line before decides."""
    said = positive(found.get("batch", ""))
    each = positive(found.get("each", ""))
    if said is None and each is not None and ranks:
        said = each * ranks
    consumed, before = positive(found.get("consumed", "")), place.consumed
    place.consumed = consumed
    if consumed is not None and before is not None and consumed > before:
        counted = (consumed - before) / done
        return said if said is not None and agree(said, counted) else counted
    return said
