"""MLPerf training logs: ``:::MLLOG`` lines, each with a JSON event."""

import json
import re
from typing import Any

from paceline.measurement.readers.lines import LogLine
from paceline.measurement.readers.reader import LineParser, LineRule, ProgramReader

MILLISECOND = 1e-3
LARGEST_EPOCH_NUMBER = 1000
"""An "epoch" number above this counts samples, as the language model benchmarks do."""

_EVENT = re.compile(r":::MLL(?:OG)?\s+(\{.*\})\s*$")
_COUNTS = {
    "global_batch_size": "global_batch",
    "number_of_ranks": "ranks",
    "number_of_nodes": "nodes",
}


class MlperfParser(LineParser):
    """State of one MLPerf log; what other programs print between the events is not its own."""

    program = "mlperf"

    def __init__(self) -> None:
        super().__init__()
        self._samples_per_epoch: float | None = None
        self._devices_per_node: float | None = None
        self._open: dict[str, tuple[float, dict[str, Any]]] = {}
        self._intervals: list[tuple[float, float]] = []
        self._rate: float | None = None
        self.rules = (LineRule(":::MLL", _EVENT, self._event),)

    def finish(self) -> None:
        """Steps and rate from the training intervals, unless the log gives a rate itself."""
        log = self.log
        if log.ranks is None and log.nodes and self._devices_per_node:
            log.ranks = round(log.nodes * self._devices_per_node)
        done = 0
        for samples, seconds in self._intervals:
            if log.global_batch and not log.facts.get("printed_step_times"):
                steps = max(1, round(samples / log.global_batch))
                done += steps
                log.step(done, seconds / steps, steps)
        if self._rate is not None:
            log.rate(self._rate, "throughput event")
        elif self._intervals:
            samples = sum(samples for samples, _ in self._intervals)
            seconds = sum(seconds for _, seconds in self._intervals)
            log.rate(samples / seconds, "samples over time of the training intervals")

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
            self._samples_per_epoch = number
        elif key == "max_sequence_length" and number and number < 1e9:
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
        elif key == "run_stop":
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
                self.log.facts["printed_step_times"] = "yes"
                self.log.step(len(self.log.steps) + 1, step)
            number = _number(value.get("throughput"))
        if number is not None and 0 < number < 1e18:
            self._rate = number

    def _boundary(self, key: str, time_ms: float, metadata: dict[str, Any]) -> None:
        """Open or close an epoch or a block of epochs; a block holds its epochs."""
        for kind in ("block", "epoch"):
            if key == f"{kind}_start":
                self._open[kind] = (time_ms, metadata)
            elif key == f"{kind}_stop" and kind in self._open:
                begun, opening = self._open.pop(kind)
                if kind == "epoch" and "block" in self._open:
                    continue
                seconds = (time_ms - begun) * MILLISECOND
                samples = self._samples_in({**opening, **metadata})
                if samples and 0 < seconds < 1e9 and len(self._intervals) < 100_000:
                    self._intervals.append((samples, seconds))

    def _samples_in(self, metadata: dict[str, Any]) -> float | None:
        epochs = _number(metadata.get("epoch_count", 1)) or 1.0
        if epochs > LARGEST_EPOCH_NUMBER:
            return epochs
        return None if self._samples_per_epoch is None else epochs * self._samples_per_epoch


def _number(value: Any) -> float | None:
    """A JSON number as a float, if it is finite and of a size that can be."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if -1e18 < value < 1e18 else None


READER = ProgramReader(
    name="mlperf",
    title="MLPerf training (:::MLLOG)",
    marks=((":::MLLOG {", 0.55), (":::MLL ", 0.4), ('"key": "run_start"', 0.1)),
    parser=MlperfParser,
)
