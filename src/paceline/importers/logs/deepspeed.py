"""DeepSpeed: the throughput timer and the wall-clock breakdown.

Format: `ThroughputTimer` in deepspeed/utils/timer.py of deepspeedai/DeepSpeed.
"""

import re

from paceline.importers.logs.parsing.log_lines import LogLine
from paceline.importers.logs.parsing.log_reader import LineParser, LineRule, ProgramReader
from paceline.importers.logs.parsing.printed_numbers import NUMBER, count, finite, positive

MILLISECOND = 1e-3

_THROUGHPUT = re.compile(
    rf"(?:global_step=|\d+/)(\d+), (?:RunningAvg)?SamplesPerSec=({NUMBER})"
    rf"(?:, CurrSamplesPerSec=({NUMBER}|inf|nan))?"
)
_BREAKDOWN = re.compile(rf"time \(ms\) \| ((?:fwd|forward): .*\| step: {NUMBER}).*$")
_OTHER_TIMERS = re.compile(rf"time \(ms\) \| (?!(?:fwd|forward): )\w+: {NUMBER}")
_TIMER = re.compile(rf"(\w+): ({NUMBER})")
_STEP = re.compile(r"\bstep=(\d+), skipped=(\d+)")
_SETTING = re.compile(
    r"\b(train_batch_size|train_micro_batch_size_per_gpu|gradient_accumulation_steps"
    r"|world_size|dist_world_size|zero_optimization_stage|zero_stage)\"?\s*(?:[.=:]+\s*)(\d+)"
)
_PHASES = {"fwd": "forward", "bwd_inner": "backward", "bwd_allreduce": "communicate"}
_PHASES |= {"forward": "forward", "backward_inner": "backward"}
_PHASES |= {"backward_allreduce": "communicate", "step": "update"}


class DeepspeedParser(LineParser):
    """State of one DeepSpeed log."""

    program = "deepspeed"
    ignored = re.compile(
        r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d+\] \[\w+\]|\[\w+\] \[|\s+\S|\s*[{}\]\[,]|\[Rank \d+\]"
    )

    def __init__(self) -> None:
        super().__init__()
        self._settings: dict[str, int] = {}
        self._rates: list[tuple[int, float, int | None]] = []
        self._breakdowns: list[tuple[int, dict[str, float], int | None]] = []
        self._running_mean: float | None = None
        self._last_step = 0
        self.rules = (
            LineRule("RunningAvg", _THROUGHPUT, self._throughput),
            LineRule("SamplesPerSec=", _THROUGHPUT, self._throughput),
            LineRule("time (ms) |", _BREAKDOWN, self._breakdown),
            LineRule("time (ms) |", _OTHER_TIMERS, self.skip),
            LineRule("skipped=", _STEP, self._step),
            self.keep("version=", r"DeepSpeed info: version=([^\s,]{1,40})", "version"),
            LineRule("", _SETTING, self._setting),
        )

    def finish(self) -> None:
        """Take steps from the throughput timer if the batch is known, else from the breakdown."""
        log, settings = self.log, self._settings
        log.ranks = settings.get("world_size") or settings.get("dist_world_size") or log.ranks
        micro = settings.get("train_micro_batch_size_per_gpu")
        accumulated = settings.get("gradient_accumulation_steps", 1)
        log.global_batch = settings.get("train_batch_size")
        if log.global_batch is None and micro and log.ranks:
            log.global_batch = micro * accumulated * log.ranks
        if log.global_batch and self._rates:
            for index, rate, rank in self._rates:
                log.step(index, log.global_batch / rate, 1, rank)
            log.drop_pauses()
        else:
            for index, timers, rank in self._breakdowns:
                names = ("forward", "backward") if "forward" in timers else ("fwd", "bwd")
                if {*names, "step"} <= timers.keys():
                    seconds = sum(timers[name] for name in (*names, "step"))
                    log.step(index, seconds, 1, rank)
        self._set_phases()
        if self._running_mean is not None:
            log.rate(self._running_mean, "RunningAvgSamplesPerSec")

    def _set_phases(self) -> None:
        kept = self._breakdowns[1:] or self._breakdowns  # the first one includes start-up
        for timer, phase in _PHASES.items():
            values = [timers[timer] for _, timers, _ in kept if timer in timers]
            if values:
                self.log.phases[phase] = sum(values) / len(values)
        if "backward" not in self.log.phases:
            named = [timers.get("bwd", timers.get("backward")) for _, timers, _ in kept]
            values = [value for value in named if value is not None]
            if values:
                self.log.phases["backward+communicate"] = sum(values) / len(values)

    def _throughput(self, match: re.Match[str], line: LogLine) -> None:
        index, mean = count(match[1]), positive(match[2])
        current = positive(match[3]) if match[3] else mean
        if index is None:
            return
        self._last_step = index
        self._running_mean = mean or self._running_mean
        if current is not None and len(self._rates) < 100_000:
            self._rates.append((index, current, line.rank))

    def _breakdown(self, match: re.Match[str], line: LogLine) -> None:
        """Keep totals per step; lines per micro-step repeat parts of them."""
        timers: dict[str, float] = {}
        for name, text in _TIMER.findall(match[1]):
            value = finite(text)
            if value is not None and 0 <= value < 1e12:
                timers[name] = value * MILLISECOND
        if len(self._breakdowns) < 100_000:
            index = max(self._last_step, len(self._breakdowns) + 1)
            self._breakdowns.append((index, timers, line.rank))

    def _step(self, match: re.Match[str], line: LogLine) -> None:
        self._last_step = count(match[1]) or self._last_step

    def _setting(self, match: re.Match[str], line: LogLine) -> None:
        value = count(match[2])
        if match[1].startswith("zero"):
            self.log.facts["zero_stage"] = match[2][:2]
        elif value:
            self._settings[match[1]] = value


READER = ProgramReader(
    name="deepspeed",
    title="DeepSpeed (throughput timer, wall_clock_breakdown)",
    marks=(
        ("SamplesPerSec=", 0.6),
        ("time (ms) | fwd", 0.6),
        ("time (ms) | forward: ", 0.6),
        ("DeepSpeed info: ", 0.3),
        ("bwd_allreduce", 0.3),
        ("deepspeed", 0.1),
        ("elapsed time per iteration (", -0.9),
    ),
    parser=DeepspeedParser,
)
