"""Programs that print a line per step or per few steps: one parser, and a table of what they print.

A `StepLine` says with named groups what a line holds:

  step      number of the step; ``epoch`` where it starts again at each
  seconds, ms, data   of a step; ``data`` is the part that waited for input
  mean, data_mean   seconds of a step, as the mean since the beginning of the epoch (or of the log)
  now       seconds of the last step alone, beside ``mean``
  interval  seconds of all steps since the line before
  elapsed, elapsed_ms   since the beginning of training, where that is what times steps
  wall      seconds since the beginning, which the steps must not exceed
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

from paceline.measurement.readers.agreement import agree, devices, mean_rate
from paceline.measurement.readers.builder import MOST_RECORDS
from paceline.measurement.readers.line_clock import IMPOSSIBLE, LineClock, stamp
from paceline.measurement.readers.lines import LogLine
from paceline.measurement.readers.numbers import count, duration, finite, positive
from paceline.measurement.readers.parsed_log import RateScope, RateUnit
from paceline.measurement.readers.reader import LineParser, LineRule, ProgramReader
from paceline.measurement.readers.step_place import MeanLine, Place, Stretch

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
    """A program's lines: its steps, its settings and how it ends; and the marks it is known by.

    ``own_rates`` says that each rank that prints gives its own samples per second.
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
        """The reader of these lines."""
        return ProgramReader(self.program, self.title, self.marks, lambda: StepLineParser(self))


_NUMBERS = ("ranks", "nodes", "global_batch", "batch_per_rank", "sequence_length")


class StepLineParser(LineParser):
    """State of one such log."""

    def __init__(self, program: StepLog) -> None:
        self.program = program.program
        super().__init__()
        self.ignored = program.ignored
        self._rates: _Rates = {}
        self._first_rates: _Rates = {}
        self._phases: list[tuple[float, float]] = []
        self._batches: list[float] = []
        self._before: dict[int | None, Place] = {}
        self._wall, self._stamps = LineClock(), LineClock()
        self._begun_at = 0
        self._own_rates = program.own_rates
        self._times_single_steps = not all(one.averages for one in program.steps)
        self.rules = (
            *(LineRule(one.needle, one.pattern, self._taker(one)) for one in program.steps),
            *(LineRule("", one.pattern, self._setter(one.name)) for one in program.settings),
            *((LineRule("", program.finished, self.end),) if program.finished else ()),
        )

    def finish(self) -> None:
        """The mean of each rate that was printed: the throughput, or what it is held against."""
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
                mean *= log.printing_ranks or 1
            source = f"mean of the printed {unit}/s"
            if name == "rate" and mean:
                log.derive_batch(mean)
            if log.steps:
                log.prints(mean, source, unit, scope)
            elif log.throughput is None or unit is RateUnit.SAMPLES:
                log.rate(mean, source, unit, scope)

    def _taker(self, line: StepLine) -> Apply:
        def take(match: re.Match[str], text: LogLine) -> None:
            self._take(line, {k: v for k, v in match.groupdict().items() if v}, text)

        return take

    def _take(self, line: StepLine, found: dict[str, str], text: LogLine) -> None:
        place = self._before.get(text.rank) or Place(line.first, begun_at=self._begun_at)
        epoch = count(found.get("epoch", ""))
        number = self._number(found, place, epoch)
        if number is None:
            return
        index, done = place.advanced(number, epoch, "mean" in found)
        if done < 1 or (text.rank not in self._before and len(self._before) >= MOST_RECORDS):
            return
        self._before[text.rank] = place
        timed = self._timed(line, found, place, done)
        samples = self._samples_of(found, place, done)
        self.log.loss(index, finite(found.get("loss", "")))
        self._check_clocks(found, text, timed)
        if timed is None and "mean" in found:
            return
        steps = timed.steps if timed else done if line.averages else 1
        is_first = not place.timed and index == done
        seconds = timed.seconds if timed else None
        self.log.step(index, seconds, steps, text.rank, warm_up=is_first, samples=samples)
        place.timed = place.timed or seconds is not None
        rates = self._first_rates if is_first else self._rates
        self._keep_rates(rates, found, steps * (samples or 1.0))
        data = duration(found.get("data", ""))
        if timed is not None and timed.data is not None:
            data = max(0.0, timed.data)
        if data is not None and not is_first and len(self._phases) < MOST_RECORDS:
            self._phases.append((data, steps))

    def _number(self, found: dict[str, str], place: Place, epoch: int | None) -> int | None:
        """Number of the line's step; from samples, where it counts those."""
        if "seen" not in found:
            return count(found.get("step", "").split(".")[0])
        seen = count(found["seen"])
        number = place.steps_of(seen, epoch)
        if seen and seen % place.batch:
            self.log.contradict(
                f"{seen:,} samples are no multiple of the first line's {place.batch:,}: "
                "the log begins in the middle of an epoch"
            )
        return number

    def _timed(
        self, line: StepLine, found: dict[str, str], place: Place, done: int
    ) -> Stretch | None:
        """Seconds of a step, and of how many, as the line tells them."""
        if "mean" in found:
            means = MeanLine(found["mean"], found.get("now", ""), found.get("data_mean", ""))
            if place.runs_on and done > 1:
                self.log.contradict(
                    "the means do not begin with the epoch: its first one is not its first step"
                )
            return place.since_before(means)
        steps = done if line.averages else 1
        seconds = _seconds(found, done)
        if "elapsed_ms" in found:
            seconds = place.since_clock(duration(found["elapsed_ms"], 1e-3), done)
        elif "elapsed" in found:
            seconds = place.since_clock(duration(found["elapsed"]), done)
        return None if seconds is None else Stretch(seconds, steps)

    def _samples_of(self, found: dict[str, str], place: Place, done: int) -> float | None:
        samples = _samples(found, place, done, self.log.ranks)
        if "seen" in found and "tokens" not in found:
            samples = float(place.batch)
        return self._of_means(found) if "mean" in found else samples

    def _check_clocks(self, found: dict[str, str], text: LogLine, timed: Stretch | None) -> None:
        """Hold the step times against the clock in the line and against its time stamp."""
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
        """A run that was resumed: its means begin with this step."""
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


def _samples(found: Mapping[str, str], place: Place, done: int, ranks: int | None) -> float | None:
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
