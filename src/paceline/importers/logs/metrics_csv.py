"""Metrics as CSV: Lightning's CSV logger, exports of W&B and TensorBoard."""

import csv

from paceline.importers.logs.parsing.log_lines import LogLine
from paceline.importers.logs.parsing.log_reader import ProgramReader
from paceline.importers.logs.parsing.metric_parser import MetricParser, starts_with
from paceline.importers.logs.parsing.printed_numbers import finite


class CsvParser(MetricParser):
    """State of one table; its first line is the header."""

    program = "metrics-csv"

    def __init__(self) -> None:
        super().__init__()
        self._header: list[str] = []

    def take(self, line: LogLine) -> bool:
        """Read the header or a row; empty cells are ignored."""
        try:
            cells = next(csv.reader([line.text]), [])
        except csv.Error:
            return False
        if not self._header:
            self._header = [_column(name) for name in cells]
            runs = sorted({name.rsplit(" - ", 1)[0] for name in cells if " - " in name})
            if len(runs) > 1 and len(set(self._header)) < len(self._header):
                self.log.contradict(
                    f"the table has {len(runs)} runs ({', '.join(runs[:3])}): export a single run"
                )
            return True
        if len(cells) != len(self._header):
            return not cells
        values = {
            name: value
            for name, cell in zip(self._header, cells, strict=True)
            if cell and (value := finite(cell)) is not None
        }
        self.rows.add(values)
        return bool(values)


def _column(name: str) -> str:
    """Metric name of a column without the run name that W&B exports prepend."""
    return name.rsplit(" - ", 1)[-1].strip()


_HEADER_CELL = r"\"?[A-Za-z_][\w|/. ()%-]{0,200}\"?"
READER = ProgramReader(
    "metrics-csv",
    "CSV: Lightning CSVLogger, exports of W&B and TensorBoard",
    (),
    CsvParser,
    starts_with(rf"(?=[^\n]*\b_?[sS]tep\b){_HEADER_CELL}(?:,{_HEADER_CELL})+\r?(?:\n|$)"),
)
