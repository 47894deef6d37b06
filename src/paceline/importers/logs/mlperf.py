"""MLPerf training logs: ``:::MLLOG`` lines with JSON events, and the older formats."""

import json
import re
from dataclasses import replace
from typing import Any

from paceline.importers.logs.parsing.log_lines import LogLine
from paceline.importers.logs.parsing.log_reader import LineParser, LineRule, ProgramReader
from paceline.importers.logs.parsing.mlperf_samples import (
    SampleCounts,
    TrainingInterval,
    chosen_reading,
)
from paceline.importers.logs.parsing.printed_numbers import finite

MILLISECOND = 1e-3

_EVENT = re.compile(r":::MLLOG\s+(\{.*\})\s*$")
_EVENT_OF_2019 = re.compile(
    r":::MLL\S* (?:\S+ )?(\d{9,11}(?:\.\d+)?) (?:\(\S+\) )?(\w+): (\{.*\})\s*$"
)
_EVENT_OF_2018 = re.compile(r":::MLP\S* (\S+) (\d{9,11}(?:\.\d+)?) \([^()]*\) (\w+)(?:: (.*))?$")
_OLD_KEYS = {
    "train_epoch": "epoch_start",
    "input_batch_size": "global_batch_size",
    "preproc_num_train_examples": "train_samples",
    "input_size": "train_samples",
}
"""Current names of the v0.5 keys."""

_COUNTS = {
    "global_batch_size": "global_batch",
    "number_of_ranks": "ranks",
    "number_of_nodes": "nodes",
}


class MlperfParser(LineParser):
    """State of one MLPerf log; other output between the events is ignored."""

    program = "mlperf"

    def __init__(self) -> None:
        super().__init__()
        self._devices_per_node: float | None = None
        self._open: dict[str, tuple[float, dict[str, Any]]] = {}
        self._counts = SampleCounts()
        self._printed: list[float] = []
        self.rules = (
            LineRule(":::MLLOG", _EVENT, self._event),
            LineRule(":::MLL", _EVENT_OF_2019, self._event_of_2019),
            LineRule(":::MLP", _EVENT_OF_2018, self._event_of_2018),
        )

    def finish(self) -> None:
        """Compute steps and rate from the training intervals if their counts are unambiguous."""
        log = self.log
        if log.ranks is None and log.nodes and self._devices_per_node:
            log.ranks = round(log.nodes * self._devices_per_node)
        readings = self._counts.readings(log.sequence_length)
        printed = self._printed
        if not readings:
            if printed:
                log.rate(printed[-1], "throughput event")
                log.warn("the log has no times to check its printed throughput against")
            return
        name, problem = chosen_reading(readings, printed, log.global_batch, log.ranks)
        if problem:
            log.contradict(problem)
            return
        self._use_reading(name, readings[name])

    def _use_reading(self, name: str, pairs: list[tuple[float, float]]) -> None:
        """Add the steps of the intervals and set the throughput."""
        log, done = self.log, 0
        if log.global_batch and name != "samples counted between events":
            log.steps.clear()
            batches = [
                interval.global_batch or log.global_batch for interval in self._counts.intervals
            ]
            for (samples, seconds), batch in zip(pairs, batches, strict=True):
                steps = round(samples / batch)
                if steps >= 1:
                    done += steps
                    log.step(done, seconds / (samples / batch), steps)
            if done and max(batches) > min(batches):
                log.global_batch = sum(samples for samples, _ in pairs) / done
                log.warn(
                    f"samples per step vary from {min(batches):,.4g} to {max(batches):,.4g}; "
                    f"using the mean, {log.global_batch:,.4g}"
                )
        if name == "samples counted between events":
            log.warn("the log only counts samples between events: step times include evaluation")
        if "tokens" in name:
            log.warn(
                f"sample counts are interpreted as tokens ({log.sequence_length:,} per sample)"
            )
        amount, seconds = sum(pair[0] for pair in pairs), sum(pair[1] for pair in pairs)
        log.rate(amount / seconds, f"{name} over time of the training intervals")

    def _event_of_2019(self, match: re.Match[str], line: LogLine) -> None:
        try:
            event = json.loads(match[3])
        except (ValueError, RecursionError):
            self.log.unread_lines += 1
            return
        metadata = event.get("metadata")
        seconds = finite(match[1])
        self._use(
            match[2],
            event.get("value"),
            None if seconds is None else seconds / MILLISECOND,
            metadata if isinstance(metadata, dict) else {},
        )

    def _event_of_2018(self, match: re.Match[str], line: LogLine) -> None:
        """v0.5 logs no end of an epoch: it ends with the next epoch or evaluation."""
        self.log.model = self.log.model or match[1][:100]
        seconds, key = finite(match[2]), _OLD_KEYS.get(match[3], match[3])
        time_ms = None if seconds is None else seconds / MILLISECOND
        text = (match[4] or "").strip()
        value: Any = finite(text) if finite(text) is not None else text
        if key in ("epoch_start", "eval_start", "run_stop") and time_ms is not None:
            self._boundary("epoch_stop", time_ms, {})
        success = {"status": "success"} if "true" in text.lower() else {}
        self._use(key, value, time_ms, success)

    def _event(self, match: re.Match[str], line: LogLine) -> None:
        try:
            event = json.loads(match[1])
        except (ValueError, RecursionError):
            self.log.unread_lines += 1
            return
        if not isinstance(event, dict) or not isinstance(event.get("key"), str):
            self.log.unread_lines += 1
            return
        metadata = event.get("metadata")
        self._use(
            event["key"],
            event.get("value"),
            _number(event.get("time_ms")),
            metadata if isinstance(metadata, dict) else {},
        )

    def _use(self, key: str, value: Any, time_ms: float | None, metadata: dict[str, Any]) -> None:
        log, number = self.log, _number(value)
        if key in _COUNTS and number and number >= 1:
            setattr(log, _COUNTS[key], number if key == "global_batch_size" else int(number))
        elif key == "accelerators_per_node":
            self._devices_per_node = number
        elif key == "train_samples":
            self._counts.samples_per_epoch = number
        elif key in ("max_sequence_length", "sequence_length") and number and number < 1e9:
            log.sequence_length = int(number)
        elif key == "submission_benchmark" and isinstance(value, str):
            log.model = value[:100]
        elif key in ("submission_org", "submission_platform", "submission_division"):
            log.facts[key] = str(value)[:200]
        elif key in ("train_loss", "loss") and number is not None:
            index = _number(metadata.get("samples_count")) or len(log.losses)
            log.loss(int(index), number)
        elif key in ("throughput", "tracked_stats"):
            self._tracked(value, number)
        elif key in ("run_stop", "run_final"):
            log.finished = metadata.get("status") == "success"
            log.facts["status"] = str(metadata.get("status", ""))[:40]
        elif time_ms is not None:
            self._boundary(key, time_ms, metadata)

    def _tracked(self, value: Any, number: float | None) -> None:
        if isinstance(value, dict):
            step = next(
                (_number(v) for k, v in value.items() if str(k).startswith("train_step_tim")), None
            )
            if step and 0 < step < 1e9:
                self.log.step(len(self.log.steps) + 1, step)
            number = _number(value.get("throughput"))
        if number is not None and 0 < number < 1e18 and len(self._printed) < 100_000:
            self._printed.append(number)

    def _boundary(self, key: str, time_ms: float, metadata: dict[str, Any]) -> None:
        """Open or close an epoch or a block of epochs."""
        for kind in ("block", "epoch"):
            if key == f"{kind}_start":
                self._open[kind] = (time_ms, metadata)
            elif key == f"{kind}_stop" and kind in self._open:
                begun, opening = self._open.pop(kind)
                if kind == "epoch" and "block" in self._open:  # part of the block's interval
                    continue
                seconds = (time_ms - begun) * MILLISECOND
                if 0 < seconds < 1e9 and len(self._counts.intervals) < 100_000:
                    interval = _interval(seconds, opening, metadata)
                    self._counts.intervals.append(
                        replace(interval, global_batch=self.log.global_batch)
                    )
        samples = _number(metadata.get("samples_count"))
        if samples is not None and len(self._counts.progress) < 100_000:
            self._counts.progress.append((time_ms * MILLISECOND, samples))


def _interval(seconds: float, opening: dict[str, Any], closing: dict[str, Any]) -> TrainingInterval:
    """A block or epoch; its samples are the difference of its counts, or its closing count."""
    both = {**opening, **closing}
    before, after = (_number(event.get("samples_count")) for event in (opening, closing))
    samples = after - before if before is not None and after is not None else after
    epochs = _number(both.get("epoch_count", 1)) or 1.0
    return TrainingInterval(seconds, epochs, samples if samples and samples > 0 else None)


def _number(value: Any) -> float | None:
    """A JSON number as a float; None if it is not a number or implausibly large."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if -1e18 < value < 1e18 else None


READER = ProgramReader(
    name="mlperf",
    title="MLPerf training, v0.5 to v5.1",
    marks=((":::MLLOG {", 0.55), (":::MLL ", 0.55), (":::MLPv", 0.55), (":::MLLv", 0.55)),
    parser=MlperfParser,
)
