"""OSU micro-benchmarks: times of a collective, or of messages between two ranks, by size."""

import re

from paceline.importers.logs.parsing.log_lines import LogLine
from paceline.importers.logs.parsing.log_reader import LineParser, LineRule, ProgramReader
from paceline.importers.logs.parsing.parsed_log import TimedCollective
from paceline.importers.logs.parsing.printed_numbers import NUMBER, count, duration

MICROSECOND = 1e-6
MOST_ROWS = 100_000
OPERATIONS = {
    "allreduce": "all_reduce",
    "allgather": "all_gather",
    "reduce_scatter": "reduce_scatter",
    "broadcast": "broadcast",
    "bcast": "broadcast",
    "reduce": "reduce",
    "all-to-all": "all_to_all",
    "alltoall": "all_to_all",
}

_TITLE = re.compile(
    r"^# OSU (?:MPI|NCCL|XCCL)[\w/-]*?\s+(.*?)\s*(?:Latency )?Test\s*(v[\d.]+)?", re.I
)
_ROW = re.compile(rf"^\s*(\d+)\s+({NUMBER})(?:\s+{NUMBER})*\s*$")


class OsuParser(LineParser):
    """State of one OSU log; bandwidth tests are ignored."""

    program = "osu"
    ignored = re.compile(r"#|\s*$")

    def __init__(self) -> None:
        super().__init__()
        self._operation = ""
        self._rows: list[tuple[float, float]] = []
        self.rules = (
            LineRule("# OSU ", _TITLE, self._title),
            LineRule("# ", re.compile("^#"), self.skip),
            LineRule("", _ROW, self._row),
        )

    def finish(self) -> None:
        """Add the collectives; OSU logs do not state the number of ranks."""
        for size, seconds in self._rows:
            self.log.collective(TimedCollective(self._operation, size, seconds, 0.0, False))

    def _title(self, match: re.Match[str], line: LogLine) -> None:
        words = match[1].lower().split()
        self._operation = next((OPERATIONS[word] for word in words if word in OPERATIONS), "")
        if match[2]:
            self.log.version = match[2]
        self.log.finished = True

    def _row(self, match: re.Match[str], line: LogLine) -> None:
        size, seconds = count(match[1]), duration(match[2], MICROSECOND)
        if self._operation and size and seconds and len(self._rows) < MOST_ROWS:
            self._rows.append((float(size), seconds))


READER = ProgramReader(
    name="osu",
    title="OSU micro-benchmarks",
    marks=(("# OSU ", 0.7), ("Avg Latency(us)", 0.3)),
    parser=OsuParser,
)
