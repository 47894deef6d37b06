"""Rows of named metrics: the meaning of names, and the conversion to steps and rates.

Trackers and trainers store rows differently (a dictionary per line, JSON, CSV, event files)
but share metric names, so one table covers all of them.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from paceline.importers.logs.parsing.agreement import AGREES_WITHIN, agree, devices, mean_rate
from paceline.importers.logs.parsing.log_builder import MOST_RECORDS, LogBuilder
from paceline.importers.logs.parsing.parsed_log import RateScope, RateUnit
from paceline.importers.logs.parsing.printed_numbers import (
    COARSEST_DIGIT,
    LONGEST_SECONDS,
    SHORTEST_SECONDS,
    half_unit,
)

_TRAINING = r"(?:train(?:ing)?[./|_])*"
_MEANINGS = {
    "step": r"(?:_step|step|Step|current_steps|(?:train(?:er)?/)?global_step|num_updates)",
    "clock": r"(?:_runtime|_timestamp|Wall time|wall_time|elapsedtime|elapsed_time)",
    "step_seconds": rf"{_TRAINING}(?:step_timing in s|(?:iter|iteration|step)[-_]time|time/step"
    r"|seconds_per_step|step_duration)",
    "input_seconds": rf"{_TRAINING}data[-_]time",
    "runtime": r"(?:train/)?train_runtime",
    "steps": rf"{_TRAINING}(?:steps_per_second|batches_per_sec|throughput/batches_per_sec)",
    "samples": rf"{_TRAINING}(?:samples_per_second|(?:throughput|global)/samples_per_sec"
    r"|(?:total_)?ips|samples/sec|sequences_per_second|throughput_train|imgs_per_sec|images_per_second)",
    "samples_each": rf"{_TRAINING}(?:throughput/)?device/samples_per_sec",
    "steps_each": rf"{_TRAINING}device/batches_per_sec",  # Composer's is a part of a step
    "tokens": rf"{_TRAINING}(?:throughput/tokens_per_sec|tokens_per_second)",
    "tokens_each": rf"{_TRAINING}throughput/device/tokens_per_sec|throughput\(tps\)",
    "batch": rf"{_TRAINING}global[-_]batch[-_]size",
    "loss": rf"(?:{_TRAINING}loss|loss|reduced_train_loss|lm[- ]loss)",
}
_COMPILED = {meaning: re.compile(pattern) for meaning, pattern in _MEANINGS.items()}
_RATES = {
    "samples": (RateUnit.SAMPLES, RateScope.GLOBAL),
    "samples_each": (RateUnit.SAMPLES, RateScope.PER_DEVICE),
    "tokens": (RateUnit.TOKENS, RateScope.GLOBAL),
    "tokens_each": (RateUnit.TOKENS, RateScope.PER_DEVICE),
    "steps": (RateUnit.STEPS, RateScope.GLOBAL),
    "steps_each": (RateUnit.STEPS, RateScope.GLOBAL),
}


def meaning_of(name: str) -> str | None:
    """Quantity of a metric by its name; None for metrics that are unrelated to speed."""
    return next((m for m, pattern in _COMPILED.items() if pattern.fullmatch(name)), None)


@dataclass
class MetricRows:
    """Rows in bounded memory; `add_to` converts them to steps and rates."""

    rates: dict[str, list[float]] = field(default_factory=dict)
    seconds: list[tuple[int, float]] = field(default_factory=list)
    clock: list[tuple[int, float]] = field(default_factory=list)
    losses: list[tuple[int, float]] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)
    products: list[tuple[float, float]] = field(default_factory=list)
    batch: float | None = None
    runtime: float | None = None
    last_step: int = 0
    unknown: dict[str, None] = field(default_factory=dict)

    def add(self, row: Mapping[str, float]) -> bool:
        """Add one row; False if no metric in it is known."""
        found: dict[str, float] = {}
        for name, value in row.items():
            meaning = meaning_of(name)
            if meaning is not None:
                found.setdefault(meaning, value)
            elif len(self.unknown) < 30:
                self.unknown[name] = None
        step = int(found["step"]) if 0 <= found.get("step", -1.0) < 1e12 else None
        if step is not None:
            self.last_step = max(self.last_step, step)
        is_training = not row or not all(n.startswith(("eval", "val", "test")) for n in row)
        self._times(found, step, is_training)
        for name in _RATES:
            if found.get(name, 0.0) > 0 and len(self.rates.get(name, ())) < MOST_RECORDS:
                self.rates.setdefault(name, []).append(found[name])
        return bool(found)

    def _times(self, found: Mapping[str, float], step: int | None, is_training: bool) -> None:
        self.batch = found.get("batch", self.batch)
        self.runtime = found.get("runtime", self.runtime)
        room = len(self.clock) + len(self.seconds) < MOST_RECORDS
        here = self.last_step + 1 if step is None else step
        taken = found.get("step_seconds", 0.0)
        if room and is_training and SHORTEST_SECONDS <= taken <= LONGEST_SECONDS:
            self.seconds.append((here, taken))
            self.last_step = max(here, self.last_step)
            if samples := found.get("samples"):
                error = rounding_of(samples) * taken + samples * rounding_of(taken)
                self.products.append((samples * taken, error))
            if 0 <= found.get("input_seconds", -1.0) <= taken:
                self.waits.append(found["input_seconds"])
        if room and step is not None and is_training and "clock" in found:
            last = self.clock[-1] if self.clock else (step, 0.0)
            if (samples := found.get("samples")) and step > last[0]:
                seconds = (found["clock"] - last[1]) / (step - last[0])
                error = rounding_of(samples) * seconds + samples * COARSEST_DIGIT
                self.products.append((samples * seconds, error))
            self.clock.append((step, found["clock"]))
        if "loss" in found and len(self.losses) < MOST_RECORDS:
            self.losses.append((here, found["loss"]))

    def add_to(self, log: LogBuilder) -> None:
        """Add steps, rates and inconsistencies to the log."""
        log.losses.extend(self.losses)
        if self.batch and self.batch >= 1:
            log.global_batch = log.global_batch or self.batch
        self._add_steps(log)
        means = {name: _mean(own) for name, own in self.rates.items()}
        if log.ranks is None:
            pairs = {name: [(1.0, rate)] for name, rate in means.items() if rate}
            log.ranks = devices(pairs, "samples") or devices(pairs, "tokens")
        samples, steps = means.get("samples"), means.get("steps")
        if steps and self._rounding("steps") > AGREES_WITHIN * steps:
            steps = 1 / log.steps[-1].seconds if log.steps else None
        if log.global_batch is None and samples and steps:
            log.global_batch = samples / steps
        if log.steps:
            log.infer_batch(self.products)
        for name, (unit, scope) in _RATES.items():
            rate = means.get(name)
            if log.steps:
                log.printed_rate(rate, f"printed {unit}/s", unit, scope, self._rounding(name))
            elif log.throughput is None:
                log.rate(rate, f"printed {unit}/s", unit, scope)
            else:
                log.printed_rate(rate, f"printed {unit}/s", unit, scope, self._rounding(name))
        if not log.steps and not means and self.unknown:
            log.warn("no metric is a time or a rate: " + ", ".join(list(self.unknown)))

    def _rounding(self, name: str) -> float:
        """Largest rounding error of the rates called ``name``, per second."""
        return max((rounding_of(rate) for rate in self.rates.get(name, ())), default=0.0)

    def _add_steps(self, log: LogBuilder) -> None:
        rates = self.rates.get("steps") or self.rates.get("steps_each") or []
        printed = _mean(rates)
        if printed and max(map(rounding_of, rates)) > AGREES_WITHIN * printed:
            printed = None  # 0.001 steps/s may be 0.0005 or 0.0015
        if self.seconds:
            for number, (step, seconds) in enumerate(self.seconds):
                log.step(step, seconds, warm_up=number == 0 and len(self.seconds) > 1)
            waits = self.waits[1:] or self.waits
            if waits:
                log.phases["input"] = sum(waits) / len(waits)
        elif self.runtime and self.last_step and SHORTEST_SECONDS < self.runtime < LONGEST_SECONDS:
            log.step(self.last_step, self.runtime / self.last_step, self.last_step)
            log.warn(
                "only the time of the whole run is logged: it includes evaluation and checkpoints"
            )
        elif self.runtime and printed:
            log.step(max(1, round(printed * self.runtime)), 1 / printed)
            log.warn(
                "only the time of the whole run is logged: it includes evaluation and checkpoints"
            )
        elif len(self.clock) > 1:
            self._add_intervals(log)
        elif printed:
            log.step(max(1, self.last_step), 1 / printed)

    def _add_intervals(self, log: LogBuilder) -> None:
        """Add steps between rows with both step and time; long pauses are dropped."""
        ordered = sorted(set(self.clock))
        spans = [
            (later, (end - begin) / (later - step), later - step)
            for (step, begin), (later, end) in pairwise(ordered)
            if later > step and end > begin
        ]
        for number, (step, seconds, steps) in enumerate(spans):
            log.step(step, seconds, steps, warm_up=number == 0 and len(spans) > 2)
        log.drop_pauses()


def _mean(rates: Sequence[float]) -> float | None:
    """Mean of rates over equal amounts of work, without the first of several (warm-up)."""
    return mean_rate([(1.0, rate) for rate in (rates[1:] if len(rates) > 2 else rates)])


def rounding_of(value: float) -> float:
    """Half a unit in the last digit of a number printed by Python or JSON.

    Both omit trailing zeros, so fewer than three decimals do not imply coarser rounding.
    """
    return min(half_unit(repr(value)), 0.5 * COARSEST_DIGIT)


def check_run_length(log: LogBuilder, steps: float, seconds: float, printed: float) -> None:
    """Check steps divided by seconds of a run against its printed rate."""
    if steps > 0 and seconds > 0 and not agree(steps / seconds, printed, rounding_of(printed)):
        log.contradict(
            f"{steps:,.0f} steps in {seconds:,.4g} s give {steps / seconds:,.4g} steps/s, "
            f"but the log prints {printed:,.4g}"
        )
