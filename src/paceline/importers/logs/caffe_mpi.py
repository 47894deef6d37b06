"""Caffe-MPI (Inspur) and NVCaffe: one MPI rank per node, one solver thread per device."""

import re
from collections import Counter

from paceline.importers.logs.caffe import CaffeParser
from paceline.importers.logs.parsing.log_lines import LogLine
from paceline.importers.logs.parsing.log_reader import LineRule, ProgramReader
from paceline.importers.logs.parsing.printed_numbers import (
    NUMBER,
    count,
    duration,
    finite,
    positive,
)

_FIRST_ITERATION = re.compile(
    rf"Iteration ([01]) \(({NUMBER}) s\)(?:, [\d./]+ep)?, loss = ({NUMBER}|-?nan|-?inf)\s*$"
)
_SOLVER = re.compile(
    rf"Solver performance on device (\d+): ({NUMBER}) \* (\d+) = ({NUMBER}) img/sec"
)
_OVERALL = re.compile(rf"Overall multi-GPU performance: ({NUMBER}) img/sec")


class CaffeMpiParser(CaffeParser):
    """State of one Caffe-MPI or NVCaffe log."""

    program = "caffe-mpi"

    def __init__(self) -> None:
        super().__init__()
        self._solvers: Counter[tuple[int | None, int]] = Counter()
        self._images_per_second = 0.0
        self._overall: float | None = None
        self.rules = (
            LineRule("Iteration ", _FIRST_ITERATION, self._first_iteration),
            LineRule("Solver performance", _SOLVER, self._solver),
            LineRule("Overall multi-GPU", _OVERALL, self._overall_rate),
            *self.rules,
        )

    def finish(self) -> None:
        """Count devices by their closing lines; a repeated device number means another node."""
        super().finish()
        log = self.log
        solvers = sum(self._solvers.values())
        if solvers:
            devices = {device for _, device in self._solvers}
            log.ranks, log.nodes = solvers, max(1, solvers // len(devices))
            log.rate(self._images_per_second, "sum of Solver performance over devices")
        if self._overall is not None:
            log.rate(self._overall, "Overall multi-GPU performance")

    def _first_iteration(self, match: re.Match[str], line: LogLine) -> None:
        index = int(match[1])
        self.log.loss(index, finite(match[3]))
        self.log.step(index, duration(match[2]), 1, line.rank, warm_up=True)

    def _solver(self, match: re.Match[str], line: LogLine) -> None:
        device, batch, rate = count(match[1]), count(match[3]), positive(match[4])
        if device is None or not batch or rate is None:
            return
        self._solvers[(line.rank, device)] += 1
        self._images_per_second += rate
        self._images_per_pass = batch
        self._passes_per_step = 1
        self.log.finished = True

    def _overall_rate(self, match: re.Match[str], line: LogLine) -> None:
        self._overall = positive(match[1])


READER = ProgramReader(
    name="caffe-mpi",
    title="Caffe-MPI and NVCaffe",
    marks=(
        ("Solver performance on device ", 0.9),
        (" iter), loss = ", 0.5),
        ("Overall multi-GPU performance", 0.3),
        (" clusters.cpp:", 0.9),
        (" caffe.cpp:", 0.3),
        (" parallel.cpp:", 0.2),
    ),
    parser=CaffeMpiParser,
)
