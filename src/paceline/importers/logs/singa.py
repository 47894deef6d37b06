"""Apache SINGA: the CNN examples, the benchmark, and the scheduler's time profile."""

import re

from paceline.importers.logs.parsing.log_lines import LogLine
from paceline.importers.logs.parsing.log_reader import LineParser, LineRule, ProgramReader
from paceline.importers.logs.parsing.printed_numbers import (
    NUMBER,
    count,
    duration,
    finite,
    positive,
)

_PROPAGATION = re.compile(rf"(Forward|Backward) Propagation Time ?: ({NUMBER}) sec")
_OPERATION = re.compile(rf"OP_ID(\d+)\. (\S.*?) ?: ({NUMBER}) sec\s*$")


class SingaParser(LineParser):
    """State of one SINGA log."""

    program = "singa"
    ignored = re.compile(
        r"Time Profiling|Time Unit|Start(?:ing|ed)? |WARNING|I\d{4} |Verbosity|\s*\d+%\|"
    )

    def __init__(self) -> None:
        super().__init__()
        self._step_seconds: float | None = None
        self._rate: float | None = None
        self._total_seconds: float | None = None
        self._epoch = 0
        self.rules = (
            LineRule(
                "Throughput", re.compile(rf"Throughput = ({NUMBER}) per second"), self._set_rate
            ),
            LineRule("TotalTime=", re.compile(rf"TotalTime=({NUMBER})"), self._set_total),
            LineRule("Total=", re.compile(rf"\bTotal=({NUMBER})"), self._set_step),
            LineRule("Propagation Time", _PROPAGATION, self._propagation),
            LineRule("OP_ID", _OPERATION, self._operation),
            LineRule("Starting Epoch", re.compile(r"Starting Epoch (\d+):"), self._start_epoch),
            LineRule("Training loss", re.compile(rf"Training loss = ({NUMBER})"), self._loss),
            LineRule("Elapsed Time", re.compile(rf"Elapsed Time = ({NUMBER})s"), self._elapsed),
        )

    def finish(self) -> None:
        """Take the step time from ``Total`` (seconds per iteration) or from the profile."""
        log = self.log
        log.rate(self._rate, "Throughput")
        communicate = sum(op.seconds for op in log.operations if "Dist" in op.name)
        if communicate:
            log.phases["communicate"] = communicate
        if self._step_seconds is not None:
            steps = 1
            if self._total_seconds is not None:
                steps = max(1, round(self._total_seconds / self._step_seconds))
            log.step(steps, self._step_seconds, steps)
            if self._rate is not None:
                log.global_batch = round(self._rate * self._step_seconds, 3)
        elif {"forward", "backward+communicate+update"} <= log.phases.keys():
            log.step(1, log.phases["forward"] + log.phases["backward+communicate+update"])

    def _set_rate(self, match: re.Match[str], line: LogLine) -> None:
        self._rate = positive(match[1])
        self.log.finished = True

    def _set_total(self, match: re.Match[str], line: LogLine) -> None:
        self._total_seconds = duration(match[1])
        step = re.search(rf"\bTotal=({NUMBER})", line.text)
        if step is not None:
            self._set_step(step, line)

    def _set_step(self, match: re.Match[str], line: LogLine) -> None:
        self._step_seconds = duration(match[1])

    def _propagation(self, match: re.Match[str], line: LogLine) -> None:
        seconds = duration(match[2])
        if seconds is not None:  # SINGA's "backward" is everything except forward
            name = "forward" if match[1] == "Forward" else "backward+communicate+update"
            self.log.phases[name] = seconds

    def _operation(self, match: re.Match[str], line: LogLine) -> None:
        seconds = finite(match[3])
        if seconds is not None and 0 <= seconds < 1e9:
            self.log.operation(match[2], seconds)

    def _start_epoch(self, match: re.Match[str], line: LogLine) -> None:
        self._epoch = count(match[1]) or 0

    def _loss(self, match: re.Match[str], line: LogLine) -> None:
        self.log.loss(self._epoch, finite(match[1]))

    def _elapsed(self, match: re.Match[str], line: LogLine) -> None:
        seconds = duration(match[1])
        if seconds is not None:
            self.log.facts["epoch_seconds"] = seconds


READER = ProgramReader(
    name="singa",
    title="Apache SINGA (CNN examples, benchmark, scheduler profile)",
    marks=(
        ("Forward Propagation Time", 0.6),
        ("OP_ID", 0.4),
        ("Time Profiling:", 0.4),
        ("Throughput = ", 0.3),
        ("TotalTime=", 0.4),
        ("Starting Epoch ", 0.3),
        ("Evaluation accuracy = ", 0.3),
        ("Elapsed Time = ", 0.2),
    ),
    parser=SingaParser,
)
