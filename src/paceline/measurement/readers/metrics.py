"""Rows of named metrics, wherever they come from: what their names mean, and what they tell.

Trackers and trainers differ in how they store rows (a dictionary per line, JSON, CSV, event
files); the names in them mean the same, and one table says what.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from paceline.measurement.readers.agreement import agree, devices, mean_rate
from paceline.measurement.readers.builder import MOST_RECORDS, LogBuilder
from paceline.measurement.readers.numbers import LONGEST_SECONDS, SHORTEST_SECONDS
from paceline.measurement.readers.parsed_log import RateScope, RateUnit

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
PAUSE = 5.0
"""An interval between rows of so many times the usual seconds per step holds something else."""


def meaning_of(name: str) -> str | None:
    """What a metric of this name tells; None for one that says nothing of speed."""
    return next((m for m, pattern in _COMPILED.items() if pattern.fullmatch(name)), None)


@dataclass
class MetricRows:
    """Rows as they come, kept within bounds; `tell` turns them into steps and rates."""

    rates: dict[str, list[float]] = field(default_factory=dict)
    seconds: list[tuple[int, float]] = field(default_factory=list)
    clock: list[tuple[int, float]] = field(default_factory=list)
    losses: list[tuple[int, float]] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)
    batch: float | None = None
    runtime: float | None = None
    last_step: int = 0
    unlike: dict[str, None] = field(default_factory=dict)

    def add(self, row: Mapping[str, float]) -> bool:
        """Use one row; False where nothing in it is known."""
        found: dict[str, float] = {}
        for name, value in row.items():
            meaning = meaning_of(name)
            if meaning is not None:
                found.setdefault(meaning, value)
            elif len(self.unlike) < 30:
                self.unlike[name] = None
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
            if 0 <= found.get("input_seconds", -1.0) <= taken:
                self.waits.append(found["input_seconds"])
        if room and step is not None and is_training and "clock" in found:
            self.clock.append((step, found["clock"]))
        if "loss" in found and len(self.losses) < MOST_RECORDS:
            self.losses.append((here, found["loss"]))

    def tell(self, log: LogBuilder) -> None:
        """Steps, rates and what contradicts what."""
        log.losses.extend(self.losses)
        if self.batch and self.batch >= 1:
            log.global_batch = log.global_batch or self.batch
        self._tell_steps(log)
        means = {name: _mean(own) for name, own in self.rates.items()}
        if log.ranks is None:
            pairs = {name: [(1.0, rate)] for name, rate in means.items() if rate}
            log.ranks = devices(pairs, "samples") or devices(pairs, "tokens")
        if log.global_batch is None and means.get("samples") and means.get("steps"):
            log.global_batch = (means["samples"] or 0.0) / (means["steps"] or 1.0)
        if means.get("samples") and log.steps:
            log.derive_batch(means["samples"] or 0.0)
        for name, (unit, scope) in _RATES.items():
            rate = means.get(name)
            if log.steps:
                log.prints(rate, f"printed {unit}/s", unit, scope)
            elif log.throughput is None:
                log.rate(rate, f"printed {unit}/s", unit, scope)
            else:
                log.prints(rate, f"printed {unit}/s", unit, scope)
        if not log.steps and not means and self.unlike:
            log.warn(
                "no metric of these rows tells a time or a rate: " + ", ".join(list(self.unlike))
            )

    def _tell_steps(self, log: LogBuilder) -> None:
        rates = self.rates.get("steps") or self.rates.get("steps_each") or []
        printed = _mean(rates)
        if self.seconds:
            for number, (step, seconds) in enumerate(self.seconds):
                log.step(step, seconds, warm_up=number == 0 and len(self.seconds) > 1)
            waits = self.waits[1:] or self.waits
            if waits:
                log.phases["input"] = sum(waits) / len(waits)
        elif self.runtime and self.last_step and SHORTEST_SECONDS < self.runtime < LONGEST_SECONDS:
            log.step(self.last_step, self.runtime / self.last_step, self.last_step)
            log.warn("the time is that of the whole run: evaluation and checkpoints are in it")
        elif self.runtime and printed:
            log.step(max(1, round(printed * self.runtime)), 1 / printed)
            log.warn("the time is that of the whole run: evaluation and checkpoints are in it")
        elif len(self.clock) > 1:
            self._tell_intervals(log)
        elif printed:
            log.step(max(1, self.last_step), 1 / printed)

    def _tell_intervals(self, log: LogBuilder) -> None:
        """Steps between rows that name both a step and a time; long pauses are left out."""
        ordered = sorted(set(self.clock))
        spans = [
            (later, (end - begin) / (later - step), later - step)
            for (step, begin), (later, end) in pairwise(ordered)
            if later > step and end > begin
        ]
        usual = sorted(seconds for _, seconds, _ in spans)[len(spans) // 2] if spans else 0.0
        left_out = 0
        for number, (step, seconds, steps) in enumerate(spans):
            if seconds > PAUSE * usual:
                left_out += 1
                continue
            log.step(step, seconds, steps, warm_up=number == 0 and len(spans) > 2)
        if left_out:
            log.warn(f"{left_out} intervals with a pause (evaluation, checkpoint) are left out")


def _mean(rates: Sequence[float]) -> float | None:
    """Mean of rates, each over the same work, without the first one of several (warm-up)."""
    return mean_rate([(1.0, rate) for rate in (rates[1:] if len(rates) > 2 else rates)])


def check_run_length(log: LogBuilder, steps: float, seconds: float, printed: float) -> None:
    """Steps over seconds of a run must be the rate that is printed of it."""
    if steps > 0 and seconds > 0 and not agree(steps / seconds, printed):
        log.contradict(
            f"{steps:,.0f} steps in {seconds:,.4g} s are {steps / seconds:,.4g} steps/s, "
            f"but the log prints {printed:,.4g}"
        )
