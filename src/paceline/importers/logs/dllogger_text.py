"""NVIDIA DLLogger's console output: rows of metrics with time stamp, epoch and iteration."""

import re

from paceline.importers.logs.parsing.line_clock import stamp
from paceline.importers.logs.parsing.log_lines import LogLine
from paceline.importers.logs.parsing.log_reader import LineRule, ProgramReader
from paceline.importers.logs.parsing.metric_parser import MetricParser
from paceline.importers.logs.parsing.printed_numbers import NUMBER, finite

_DLL_LINE = re.compile(
    r"DLL (?P<stamp>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+) - "
    r"(?P<position>\([\d, ]+\)|(?:\w*\s?(?:Epoch|Iteration|Step): \d+ ?)+|)(?P<text>.*)"
)
_DLL_PAIR = re.compile(rf"([\w./]+) : ({NUMBER})(?=\s|$)")


class DllTextParser(MetricParser):
    """State of one log: lines of time stamp, epoch and iteration, and ``name : value unit``."""

    program = "dllogger"
    ignored = re.compile(r".*")

    def __init__(self) -> None:
        super().__init__()
        self.rules = (LineRule("DLL 2", _DLL_LINE, self._line),)
        self._position: tuple[float, float] | None = None
        self._begun, self._steps = 0.0, 0.0

    def _line(self, match: re.Match[str], line: LogLine) -> None:
        clock, position, text = stamp(match["stamp"]), match["position"], match["text"]
        row = {name: value for name, digits in _DLL_PAIR.findall(text) if (value := finite(digits))}
        numbers = [float(number) for number in re.findall(r"\d+", position)]
        if "ITER" in position.upper() or position.count(",") == 1:
            row["step"] = numbers[-1] if len(numbers) == 1 else self._index(numbers)
            if clock is not None:
                row["_timestamp"] = clock
        self.rows.add(row)

    def _index(self, numbers: list[float]) -> float:
        """Step number within the whole log; iterations restart with each epoch."""
        position = (numbers[0], numbers[-1])
        if (
            self._position is None
            or position[0] != self._position[0]
            or position[1] < self._position[1]
        ):
            self._begun = self._steps + 1 - position[1] if self._position else 0.0
        self._position, self._steps = position, self._begun + position[1]
        return self._steps


READER = ProgramReader(
    "dllogger-text", "NVIDIA DLLogger (console)", (("DLL 20", 0.8),), DllTextParser
)
