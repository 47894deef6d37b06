"""nccl-tests (and rccl-tests): a table of collective times by message size.

Format: src/common.cu of NVIDIA/nccl-tests.
"""

import re

from paceline.importers.logs.parsing.agreement import agree
from paceline.importers.logs.parsing.log_lines import LogLine
from paceline.importers.logs.parsing.log_reader import LineParser, LineRule, ProgramReader
from paceline.importers.logs.parsing.parsed_log import TimedCollective
from paceline.importers.logs.parsing.printed_numbers import NUMBER, count, duration, positive

MICROSECOND = 1e-6
GIGABYTE = 1e9

_CELLS = rf"\s+({NUMBER})\s+({NUMBER})\s+({NUMBER})\s+({NUMBER}|N/A)"
_ROW = re.compile(
    rf"^\s*(\d+)\s+(\d+)\s+([a-z]\w*)\s+([a-z]\w*)(?:\s+(-?\d+))?{_CELLS}(?:{_CELLS})?\s*$"
)
_RANK = re.compile(r"^#\s+Rank\s+(\d+) .*?\bon\s+(\S+) device\s+\d+ \[\S+\] (\S.*)$")
_TEST = re.compile(r"\b(\w+)_perf\b")
_MEAN = re.compile(rf"Avg bus bandwidth\s*: ({NUMBER})")


class NcclTestsParser(LineParser):
    """State of one nccl-tests log."""

    program = "nccl-tests"
    ignored = re.compile(r"#|NCCL version|\S+ NCCL |rccl|\S+:\d+:\d+ ")

    def __init__(self) -> None:
        super().__init__()
        self._operation = ""
        self._reduction = ""
        self._rows: list[tuple[float, float, float, float, bool]] = []
        self._ranks: set[int] = set()
        self._hosts: set[str] = set()
        self.rules = (
            LineRule("Avg bus bandwidth", _MEAN, self._mean),
            LineRule("# ", _RANK, self._rank),
            LineRule("_perf", _TEST, self._test),
            LineRule("# ", re.compile("^#"), self.skip),
            LineRule("float", _ROW, self._row),
            LineRule("", _ROW, self._row),
        )

    def finish(self) -> None:
        """Name the operation after its test, or infer it from the bus bandwidth."""
        log = self.log
        log.ranks, log.nodes = len(self._ranks) or None, len(self._hosts) or None
        operation = self._operation or self._inferred()
        self._check_bandwidth()
        for size, seconds, _, bus, in_place in self._rows:
            log.collective(TimedCollective(operation, size, seconds, bus, in_place))

    def _check_bandwidth(self) -> None:
        """Check the algorithm bandwidth of the largest message against its size and time."""
        size, seconds, algorithm, _, _ = max(self._rows, default=(0.0, 1.0, 0.0, 0.0, False))
        if algorithm and not agree(size / seconds, algorithm):
            self.log.contradict(
                f"{size:,.0f} bytes in {seconds * 1e6:,.4g} us give "
                f"{size / seconds / GIGABYTE:.4g} GB/s, "
                f"but the log prints {algorithm / GIGABYTE:.4g}"
            )

    def _inferred(self) -> str:
        """The collective whose ratio of bus to algorithm bandwidth fits the largest message."""
        rows = [row for row in self._rows if row[2] > 0]
        if not rows or not self.log.ranks or self.log.ranks < 2:
            return "unknown"
        _, _, algorithm, bus, _ = max(rows)
        share = (self.log.ranks - 1) / self.log.ranks
        ratio = bus / algorithm
        self.log.warn("the log does not name its test: operation inferred from the bus bandwidth")
        if abs(ratio - 2 * share) < 0.1:
            return "all_reduce"
        if abs(ratio - share) < 0.02:
            return "all_gather" if self._reduction == "none" else "reduce_scatter"
        return "broadcast" if self._reduction == "none" else "reduce"

    def _row(self, match: re.Match[str], line: LogLine) -> None:
        size = count(match[1])
        self._reduction = match[4]
        for first, in_place in ((6, False), (10, True)):
            if not size or match[first] is None or len(self._rows) >= 100_000:
                continue
            seconds = duration(match[first], MICROSECOND)
            algorithm = (positive(match[first + 1]) or 0.0) * GIGABYTE
            bus = (positive(match[first + 2]) or 0.0) * GIGABYTE
            if seconds is not None:
                self._rows.append((float(size), seconds, algorithm, bus, in_place))

    def _rank(self, match: re.Match[str], line: LogLine) -> None:
        rank = count(match[1])
        if rank is not None and len(self._ranks) < 1_000_000:
            self._ranks.add(rank)
            self._hosts.add(match[2][:200])
            self.log.facts["device"] = match[3][:100]

    def _test(self, match: re.Match[str], line: LogLine) -> None:
        self._operation = self._operation or match[1].rsplit("/", 1)[-1]

    def _mean(self, match: re.Match[str], line: LogLine) -> None:
        mean = positive(match[1])
        if mean is not None:
            self.log.facts["mean_bus_bandwidth"] = mean * GIGABYTE
        self.log.finished = True


READER = ProgramReader(
    name="nccl-tests",
    title="nccl-tests and rccl-tests",
    marks=(
        ("# Avg bus bandwidth", 0.5),
        ("busbw", 0.5),
        ("algbw", 0.3),
        ("# nThread ", 0.4),
        ("_perf", 0.1),
    ),
    parser=NcclTestsParser,
)
