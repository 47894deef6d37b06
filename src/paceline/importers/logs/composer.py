"""MosaicML Composer: the console logger's block of metrics per batch."""

import re

from paceline.importers.logs.parsing.log_lines import LogLine
from paceline.importers.logs.parsing.log_reader import LineRule, ProgramReader
from paceline.importers.logs.parsing.metric_parser import MetricParser
from paceline.importers.logs.parsing.printed_numbers import NUMBER, finite


class ComposerParser(MetricParser):
    """Composer's console: a block of metrics for each ``[batch=10/4800]``."""

    program = "composer"
    ignored = re.compile(r".*")

    def __init__(self) -> None:
        super().__init__()
        self.rules = (
            LineRule("", re.compile(rf"^\s+(?:Train )?([\w./]+): ({NUMBER})\s*$"), self._metric),
        )

    def _metric(self, match: re.Match[str], line: LogLine) -> None:
        value = finite(match[2])
        if value is not None and match[1].startswith(("throughput/", "loss/train")):
            self.rows.add({match[1]: value})


READER = ProgramReader(
    "composer",
    "MosaicML Composer",
    (("throughput/samples_per_sec", 0.6), ("[batch=", 0.3), ("time/batch", 0.2)),
    ComposerParser,
)
