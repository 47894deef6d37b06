"""CNTK's performance profiler: the table of phases in its summary report."""

import re

from paceline.importers.logs.parsing.log_lines import LogLine
from paceline.importers.logs.parsing.log_reader import LineParser, LineRule, ProgramReader
from paceline.importers.logs.parsing.printed_numbers import NUMBER, count, duration

_TIME = rf"(?:{NUMBER} ms|\d+:\d\d:\d\d(?:\.\d+)?)"
_ROW = re.compile(
    rf"^(_{{0,2}}[A-Z][A-Za-z +]*?)\s*:\s+({_TIME})"
    rf"\s+{_TIME}\s+{_TIME}\s+{_TIME}\s+(\d+)\s+({_TIME})"
)
_STEP_ROW = "_Minibatch Iteration"
_PHASES = {
    "__Get Minibatch": "input",
    "__Forward + Backward": "forward+backward",
    "__Gradient Aggregation": "communicate",
    "__Weight Update": "update",
    "__Post Processing": "other",
}


class CntkProfilerParser(LineParser):
    """State of one summary report."""

    program = "cntk"
    ignored = re.compile(
        r"CNTK Performance Profiler|Time Stamp:|Description\.|Main Thread|Data Reader"
    )

    def __init__(self) -> None:
        super().__init__()
        self._totals: dict[str, float] = {}
        self._steps = 0
        self.rules = (LineRule(" ms ", _ROW, self._row), LineRule(":", _ROW, self._row))

    def finish(self) -> None:
        """Divide the total of each phase by the number of minibatches."""
        if not self._steps:
            if self._totals:
                self.log.warn(f"row '{_STEP_ROW}' is missing: time per step is unknown")
            return
        for row, phase in _PHASES.items():
            if row in self._totals:
                self.log.phases[phase] = self._totals[row] / self._steps
        if "Prefetch Minibatch" in self._totals:
            self.log.facts["prefetch_seconds"] = self._totals["Prefetch Minibatch"] / self._steps
        self.log.finished = True

    def _row(self, match: re.Match[str], line: LogLine) -> None:
        mean, calls, total = _seconds(match[2]), count(match[3]), _seconds(match[4])
        if total is None:
            return
        if match[1] == _STEP_ROW and calls and mean is not None:
            self._steps = calls
            self.log.step(calls, mean, calls)
        elif match[1] in _PHASES or match[1] == "Prefetch Minibatch":
            self._totals[match[1]] = total

    def take(self, line: LogLine) -> bool:
        """Skip headings before applying the rules: they contain colons too."""
        return self.ignored.match(line.text) is not None or super().take(line)


def _seconds(text: str) -> float | None:
    """Seconds of ``12.345 ms`` or ``00:01:02.345``."""
    if text.endswith(" ms"):
        return duration(text.removesuffix(" ms"), 1e-3)
    hours, minutes, seconds = text.split(":")
    parts = (duration(hours, 3600), duration(minutes, 60), duration(seconds))
    return sum(part or 0.0 for part in parts) or None


READER = ProgramReader(
    name="cntk-profiler",
    title="CNTK performance profiler, summary report",
    marks=(
        ("CNTK Performance Profiler Summary Report", 1.0),
        ("_Minibatch Iteration", 0.6),
        ("__Gradient Aggregation", 0.4),
    ),
    parser=CntkProfilerParser,
)
