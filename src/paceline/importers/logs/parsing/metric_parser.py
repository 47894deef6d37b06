"""Base of readers whose lines are rows of metrics: dictionaries, JSON, CSV, tables."""

import re
from collections.abc import Callable, Mapping
from typing import Any

from paceline.importers.logs.parsing.log_reader import LineParser
from paceline.importers.logs.parsing.metric_rows import MetricRows


class MetricParser(LineParser):
    """State of one log with rows of metrics; subclasses convert lines to rows."""

    def __init__(self) -> None:
        super().__init__()
        self.rows = MetricRows()

    def finish(self) -> None:
        self.rows.add_to(self.log)


def plain_numbers(row: Mapping[str, Any]) -> dict[str, float]:
    """Numeric values of a row by name; durations such as 1:02:03 become seconds."""
    clocks = {name: _clock(value) for name, value in row.items() if isinstance(value, str)}
    return {str(name): value for name, value in clocks.items() if value is not None} | {
        str(name): float(value)
        for name, value in row.items()
        if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e18
    }


def _clock(text: str) -> float | None:
    match = re.fullmatch(r"(?:(\d{1,4}) days?, )?(\d{1,4}):(\d\d):(\d\d)", text)
    if match is None:
        return None
    days, hours, minutes, seconds = (float(part or 0) for part in match.groups())
    return 86_400 * days + 3600 * hours + 60 * minutes + seconds


def starts_with(pattern: str, confidence: float = 0.9) -> Callable[[str], float]:
    """A sniffer that returns ``confidence`` if a log starts with ``pattern``."""
    compiled = re.compile(pattern)

    def sniff(head: str) -> float:
        return confidence if compiled.match(head) else 0.0

    return sniff
