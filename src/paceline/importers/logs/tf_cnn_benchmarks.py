"""tf_cnn_benchmarks: step lines with the mean rate since the first step.

Format: scripts/tf_cnn_benchmarks/benchmark_cnn.py of tensorflow/benchmarks.
"""

import math
import re

from paceline.importers.logs.parsing.log_lines import LogLine
from paceline.importers.logs.parsing.log_reader import LineParser, LineRule, ProgramReader
from paceline.importers.logs.parsing.printed_numbers import NUMBER, count, finite, positive

_STEP = re.compile(
    rf"\b(\d+)\s+images/sec: ({NUMBER}) \+/- ({NUMBER}) \(jitter = ({NUMBER})\)\s*({NUMBER}|nan)?"
)
_TOTAL = re.compile(rf"total images/sec: ({NUMBER})")


class TfCnnBenchmarksParser(LineParser):
    """State of one benchmark log."""

    program = "tf_cnn_benchmarks"
    ignored = re.compile(
        r"(?:TensorFlow|Dataset|Mode|SingleSess|Num (?:batches|epochs)|Devices|NUMA bind"
        r"|Data format|Layout optimizer|Optimizer|Variables|Sync|AllReduce|Horovod fp16|Job|Task)\b"
        r"|=+$|-+$|Generating|Running warm up|Done warm up|Step\s+Img/sec|Initializing graph"
        r"|[IWE]\d{4} |\d{4}-\d\d-\d\d |WARNING|Instructions for|\s+\S"
    )

    def __init__(self) -> None:
        super().__init__()
        self._batch_per_device: float | None = None
        self._devices_per_worker = 1
        self._means: list[tuple[int, float, int | None]] = []
        self._total: float | None = None
        self.rules = (
            LineRule("total images/sec", _TOTAL, self._set_total),
            LineRule("images/sec:", _STEP, self._step),
            self.keep(
                "TensorFlow:", r"TensorFlow:\s+(\S{1,40})", "version", "TensorFlow {}".format
            ),
            self.keep("Model:", r"Model:\s+(\S{1,100})", "model"),
            self.keep(" global", rf"Batch size:\s+({NUMBER}) global", "global_batch", positive),
            self.keep(" per device", rf"({NUMBER}) per device", "_batch_per_device", positive),
            LineRule("Devices:", re.compile(r"Devices:\s+\[(.*)\]"), self._devices),
            self.keep("Dataset:", r"Dataset:\s+(\S.*)$", "dataset"),
            self.keep("Variables:", r"Variables:\s+(\S+)", "variables"),
        )

    def finish(self) -> None:
        """Recover step times from the running mean of rates."""
        log = self.log
        if self._batch_per_device and log.global_batch:
            log.ranks = max(1, round(log.global_batch / self._batch_per_device))
        batch = self._batch_behind_step_lines()
        if batch is not None:
            self._add_steps(batch)
        if self._total is not None:
            log.rate(self._total, "total images/sec")
        elif self._means and batch is not None and log.global_batch:
            last = self._means[-1][1] * log.global_batch / batch
            log.rate(last, "images/sec of the last step line")
            log.warn("truncated before its total: using the running mean of the last step line")

    def _batch_behind_step_lines(self) -> float | None:
        """Batch that printed rates refer to (device, worker or job): the one that fits the total.

        With Horovod each worker prints its own rate, otherwise one worker prints that of the job.
        """
        whole, single = self.log.global_batch, self._batch_per_device
        if whole is None or single is None:
            return whole
        if self._total is None or not self._means:
            return single if self.log.facts.get("variables") == "horovod" else whole
        workers = self._total / self._means[-1][1]
        candidates = {single, min(whole, single * self._devices_per_worker), whole}
        return min(candidates, key=lambda batch: abs(math.log(workers * batch / whole)))

    def _add_steps(self, batch: float) -> None:
        """Compute mean seconds between printed steps from successive running means."""
        before: dict[int | None, tuple[int, float]] = {}
        for index, rate, rank in self._means:
            step, spent = before.get(rank, (0, 0.0))
            if index <= step:
                step, spent = 0, 0.0
            total = index * batch / rate
            seconds = (total - spent) / (index - step)
            if seconds <= 0:
                seconds = batch / rate
            self.log.step(index, seconds, index - step, rank)
            before[rank] = (index, total)

    def _step(self, match: re.Match[str], line: LogLine) -> None:
        index, rate = count(match[1]), positive(match[2])
        if not index or rate is None or len(self._means) >= 100_000:
            return
        self._means.append((index, rate, line.rank))
        if match[5] is not None:
            self.log.loss(index, finite(match[5]))

    def _set_total(self, match: re.Match[str], line: LogLine) -> None:
        self._total = positive(match[1])
        self.log.finished = True

    def _devices(self, match: re.Match[str], line: LogLine) -> None:
        self._devices_per_worker = max(1, match[1].count(",") + 1)


READER = ProgramReader(
    name="tf_cnn_benchmarks",
    title="tf_cnn_benchmarks",
    marks=(
        ("images/sec: ", 0.4),
        ("(jitter = ", 0.6),
        ("total images/sec: ", 0.4),
        ("SingleSess: ", 0.3),
        ("Done warm up", 0.2),
    ),
    parser=TfCnnBenchmarksParser,
)
