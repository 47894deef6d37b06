"""NVIDIA DLLogger's console: rows of metrics with a time and a place."""

import re

from paceline.measurement.readers.line_clock import stamp
from paceline.measurement.readers.lines import LogLine
from paceline.measurement.readers.metric_logs import MetricParser
from paceline.measurement.readers.numbers import NUMBER, finite
from paceline.measurement.readers.reader import LineRule, ProgramReader

_DLL_LINE = re.compile(
    r"DLL (?P<stamp>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+) - "
    r"(?P<place>\([\d, ]+\)|(?:\w*\s?(?:Epoch|Iteration|Step): \d+ ?)+|)(?P<text>.*)"
)
_DLL_PAIR = re.compile(rf"([\w./]+) : ({NUMBER})(?=\s|$)")


class DllTextParser(MetricParser):
    """DLLogger's console: time, place and ``name : value unit`` of each line."""

    program = "dllogger"
    ignored = re.compile(r".*")

    def __init__(self) -> None:
        super().__init__()
        self.rules = (LineRule("DLL 2", _DLL_LINE, self._line),)
        self._place: tuple[float, float] | None = None
        self._begun, self._steps = 0.0, 0.0

    def _line(self, match: re.Match[str], line: LogLine) -> None:
        clock, place, text = stamp(match["stamp"]), match["place"], match["text"]
        row = {name: value for name, digits in _DLL_PAIR.findall(text) if (value := finite(digits))}
        numbers = [float(number) for number in re.findall(r"\d+", place)]
        if "ITER" in place.upper() or place.count(",") == 1:
            row["step"] = numbers[-1] if len(numbers) == 1 else self._index(numbers)
            if clock is not None:
                row["_timestamp"] = clock
        self.rows.add(row)

    def _index(self, numbers: list[float]) -> float:
        """One number for epoch and iteration, which begins again with each epoch."""
        place = (numbers[0], numbers[-1])
        if self._place is None or place[0] != self._place[0] or place[1] < self._place[1]:
            self._begun = self._steps + 1 - place[1] if self._place else 0.0
        self._place, self._steps = place, self._begun + place[1]
        return self._steps


READER = ProgramReader(
    "dllogger-text", "NVIDIA DLLogger (console)", (("DLL 20", 0.8),), DllTextParser
)
