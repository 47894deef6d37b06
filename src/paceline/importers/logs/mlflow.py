"""MLflow: a metric file of its file store."""

import re

from paceline.importers.logs.parsing.log_lines import LogLine
from paceline.importers.logs.parsing.log_reader import LineRule, ProgramReader
from paceline.importers.logs.parsing.metric_parser import MetricParser, starts_with
from paceline.importers.logs.parsing.printed_numbers import NUMBER


class MlflowParser(MetricParser):
    """State of one metric file: lines of time in milliseconds, value, step."""

    program = "mlflow"

    def __init__(self) -> None:
        super().__init__()
        self.rules = (LineRule("", re.compile(rf"^(\d{{12,14}}) ({NUMBER}) (\d+)$"), self._point),)

    def _point(self, match: re.Match[str], line: LogLine) -> None:
        self.rows.add({"_timestamp": int(match[1]) / 1e3, "step": float(match[3])})


READER = ProgramReader(
    "mlflow", "MLflow metric file", (), MlflowParser, starts_with(r"\d{12,14} \S+ \d+(?:\n|$)")
)
