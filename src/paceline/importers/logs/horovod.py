"""Horovod's synthetic benchmark; PyTorch, TensorFlow and MXNet variants share one format.

Format: examples/pytorch/pytorch_synthetic_benchmark.py of horovod/horovod.
"""

import re

from paceline.importers.logs.parsing.log_lines import LogLine
from paceline.importers.logs.parsing.log_reader import LineParser, LineRule, ProgramReader
from paceline.importers.logs.parsing.parsed_log import Rate, RateScope, RateUnit
from paceline.importers.logs.parsing.printed_numbers import NUMBER, count, positive

BATCHES_PER_ITERATION = 10
"""Default of ``--num-batches-per-iter``: steps per printed iteration."""

_ITERATION = re.compile(rf"Iter #(\d+): ({NUMBER}) img/sec per (\S+)")
_PER_DEVICE = re.compile(rf"Img/sec per (\S+?): ({NUMBER}) ?(?:\+-|±) ?({NUMBER})")
_TOTAL = re.compile(rf"Total img/sec on (\d+) (\S+?)\(s\): ({NUMBER}) ?(?:\+-|±) ?({NUMBER}|nan)")


class HorovodBenchmarkParser(LineParser):
    """State of one benchmark log."""

    program = "horovod"
    ignored = re.compile(r"Running (?:warmup|benchmark)|WARNING|\d{4}-\d\d-\d\d |I\d{4} ")

    def __init__(self) -> None:
        super().__init__()
        self._iterations: list[tuple[int, float, int | None]] = []
        self._per_device: Rate | None = None
        self.rules = (
            LineRule("Iter #", _ITERATION, self._iteration),
            LineRule("Total img/sec", _TOTAL, self._total),
            LineRule("Img/sec per", _PER_DEVICE, self._device_rate),
            self.keep("Model: ", r"Model: (\S{1,100})", "model"),
            self.keep("Batch size: ", r"Batch size: (\d+)", "batch_per_rank", count),
            LineRule("Number of ", re.compile(r"Number of (\S+?)s: (\d+)"), self._devices),
        )

    def finish(self) -> None:
        """Compute step times as batch per device divided by rate per device."""
        log = self.log
        if log.batch_per_rank:
            for number, rate, rank in self._iterations:
                last = (number + 1) * BATCHES_PER_ITERATION
                log.step(last, log.batch_per_rank / rate, BATCHES_PER_ITERATION, rank)
        if log.throughput is None:
            log.throughput = self._per_device
        if log.throughput is None and self._iterations:
            mean = sum(rate for _, rate, _ in self._iterations) / len(self._iterations)
            log.rate(
                mean * (log.ranks or 1),
                "mean of the iterations",
                scope=RateScope.GLOBAL if log.ranks else RateScope.PER_DEVICE,
            )
            log.warn("truncated before its totals: using the mean of the iterations")

    def _iteration(self, match: re.Match[str], line: LogLine) -> None:
        number, rate = count(match[1]), positive(match[2])
        if number is not None and rate is not None and len(self._iterations) < 100_000:
            self._iterations.append((number, rate, line.rank))

    def _total(self, match: re.Match[str], line: LogLine) -> None:
        self.log.ranks = count(match[1]) or self.log.ranks
        self.log.rate(positive(match[3]), "Total img/sec", spread_per_second=positive(match[4]))
        self.log.finished = True

    def _device_rate(self, match: re.Match[str], line: LogLine) -> None:
        rate = positive(match[2])
        if rate is not None:
            self._per_device = Rate(
                rate,
                RateUnit.SAMPLES,
                RateScope.PER_DEVICE,
                f"Img/sec per {match[1]}",
                positive(match[3]),
            )

    def _devices(self, match: re.Match[str], line: LogLine) -> None:
        self.log.ranks = count(match[2]) or None
        self.log.facts["device"] = match[1]


READER = ProgramReader(
    name="horovod",
    title="Horovod synthetic benchmark",
    marks=(
        (" img/sec per ", 0.6),
        ("Total img/sec on ", 0.6),
        ("Img/sec per ", 0.4),
        ("Running benchmark...", 0.2),
    ),
    parser=HorovodBenchmarkParser,
)
