"""Caffe (BVLC): ``caffe train`` and ``caffe time``, logged by glog to standard error."""

import re
from dataclasses import replace

from paceline.importers.logs.parsing.caffe_network import BYTES_PER_PARAMETER, CaffeNetwork
from paceline.importers.logs.parsing.log_lines import LogLine
from paceline.importers.logs.parsing.log_reader import LineParser, LineRule, ProgramReader
from paceline.importers.logs.parsing.printed_numbers import (
    NUMBER,
    count,
    duration,
    finite,
    positive,
)

MILLISECOND = 1e-3

_GLOG_PREFIX = re.compile(
    r"[IWEF](?:\d{4}|\d{8}) \d{2}:\d{2}:\d{2}\.\d{1,9}\s+\d{1,10} [\w./+-]{1,200}:\d+\] ?"
)
"""E.g. ``I20261115 20:35:55.557313  4672 solver.cpp:239] ...``; older versions omit the year."""
_ITERATION = re.compile(
    rf"Iteration (\d+) \(({NUMBER}|-?nan|-?inf) iter/s, ({NUMBER})s/(\d+) iters?\)"
    rf"(?:, [\d./]+ep)?, loss = ({NUMBER}|-?nan|-?inf)\s*$"
)
_BENCHMARK_ITERATION = re.compile(rf"Iteration: (\d+) forward-backward time: ({NUMBER}) ms\.")
_LAYER = re.compile(rf"^\s*(\S.*?)\s*\t(forward|backward): ({NUMBER}) ms\.")
_AVERAGE = re.compile(rf"Average (Forward pass|Backward pass|Forward-Backward): ({NUMBER}) ms\.")
_UNTIMED_ITERATION = re.compile(
    r"Iteration \d+, (?:lr = |loss = |Testing net|m = |wd = )|Restoring|Snapshotting"
)


class CaffeParser(LineParser):
    """State of one Caffe log."""

    program = "caffe"
    ignored = re.compile(
        r"[IWEF]\d{4,8} \d\d:\d\d:\d\d\.\d+\s+\d+ [\w./+-]+:\d+\] "
        r"|\s*\w+ \{\s*$|\s*\}\s*$|\s*\w+: (?:\"[^\"]*\"|[\w.+-]+)\s*$"
        r"|(?:real|user|sys)\s+\d+m"
    )

    def __init__(self) -> None:
        super().__init__()
        self._images_per_pass: int | None = None
        self._passes_per_step = 1
        self._average_seconds: float | None = None
        self._network = CaffeNetwork()
        self.rules = (
            LineRule("iter/s", _ITERATION, self._iteration),
            LineRule("forward-backward time", _BENCHMARK_ITERATION, self._benchmark_iteration),
            LineRule("\tforward: ", _LAYER, self._layer),
            LineRule("\tbackward: ", _LAYER, self._layer),
            LineRule("Average ", _AVERAGE, self._average),
            LineRule("Average time per layer", re.compile("per layer"), self.skip),
            LineRule("Iteration ", _UNTIMED_ITERATION, self.skip),
            LineRule("Top shape: ", re.compile(r"Top shape: (\d+)"), self._top_shape),
            LineRule("iter_size: ", re.compile(r"^iter_size: (\d+)"), self._iter_size),
            LineRule("Solving ", re.compile(r"Solving (\S.*)$"), self._solving),
            LineRule("Using GPUs ", re.compile(r"Using GPUs ([\d, ]+)"), self._devices),
            LineRule("Use CPU", re.compile("Use CPU"), self._one_device),
            LineRule("Use GPU with device", re.compile("Use GPU with device"), self._one_device),
            LineRule("Optimization Done", re.compile("Optimization Done"), self.end),
            LineRule("*** Benchmark ends", re.compile("Benchmark ends"), self.end),
        )

    def take(self, line: LogLine) -> bool:
        """Apply the rules to the message; a complete glog prefix marks a complete line."""
        prefix = _GLOG_PREFIX.match(line.text)
        if prefix is None:
            if not self.log.model:
                self._net_name(line.text)
            self._network.definition_line(line.text)
            return super().take(line)
        message = line.text[prefix.end() :]
        self._network.message(message)
        return super().take(LogLine(message, line.rank, line.is_task)) or _is_known_message(message)

    def finish(self) -> None:
        """Take the batch from the first blob, and the rate of ``caffe time`` from its average."""
        log = self.log
        sizes = self._network.gradient_bytes()
        if sizes:
            log.facts["parameters"] = sum(sizes.values()) / BYTES_PER_PARAMETER
        for name, layer in log.layers.items():
            log.layers[name] = replace(layer, gradient_bytes=sizes.get(name, 0.0))
        if self._images_per_pass is not None:
            log.batch_per_rank = self._images_per_pass * self._passes_per_step
        if self._average_seconds is not None:
            log.facts["measures"] = "forward and backward only: no input, update or exchange"
            if self._images_per_pass is not None and log.ranks in (1, None):
                log.rate(self._images_per_pass / self._average_seconds, "Average Forward-Backward")

    def _net_name(self, text: str) -> None:
        match = re.match(r'name: "([^"]{1,200})"', text)
        if match is not None:
            self.log.model = match[1]

    def _iteration(self, match: re.Match[str], line: LogLine) -> None:
        index, lapse = count(match[1]), duration(match[3])
        per_second, display = positive(match[2]), count(match[4])
        if index is None or lapse is None or not display:
            return
        self.log.loss(index, finite(match[5]))
        if index == 0:  # the rate of iteration 0 is garbage; its lapse is that of one step
            self.log.step(0, lapse, 1, line.rank, warm_up=True)
            return
        steps = display
        if per_second is not None and 0.5 < per_second * lapse < 1e9:
            steps = round(per_second * lapse)
        self.log.step(index, lapse / steps, steps, line.rank)

    def _benchmark_iteration(self, match: re.Match[str], line: LogLine) -> None:
        index = count(match[1])
        if index is not None:
            self.log.step(index, duration(match[2], MILLISECOND), rank=line.rank)

    def _layer(self, match: re.Match[str], line: LogLine) -> None:
        value = finite(match[3])
        seconds = None if value is None or value < 0 else value * MILLISECOND
        if match[2] == "forward":
            self.log.layer(match[1], forward_seconds=seconds)
        else:
            self.log.layer(match[1], backward_seconds=seconds)

    def _average(self, match: re.Match[str], line: LogLine) -> None:
        seconds = duration(match[2], MILLISECOND)
        if seconds is None:
            return
        if match[1] == "Forward-Backward":
            self._average_seconds = seconds
        else:
            self.log.phases[match[1].split()[0].lower()] = seconds

    def _top_shape(self, match: re.Match[str], line: LogLine) -> None:
        if self._images_per_pass is None:
            self._images_per_pass = count(match[1]) or None

    def _iter_size(self, match: re.Match[str], line: LogLine) -> None:
        self._passes_per_step = count(match[1]) or 1

    def _solving(self, match: re.Match[str], line: LogLine) -> None:
        self.log.model = match[1].strip()

    def _devices(self, match: re.Match[str], line: LogLine) -> None:
        self.log.ranks = len([part for part in match[1].split(",") if part.strip()]) or None

    def _one_device(self, match: re.Match[str], line: LogLine) -> None:
        self.log.ranks = self.log.ranks or 1


def _is_known_message(message: str) -> bool:
    """Whether a complete glog line carries no timing (anything but a truncated timing line)."""
    return not re.match(r"Iteration|Average (?!time)|\s*\S+\s*\t(?:for|back)|Solver perf", message)


READER = ProgramReader(
    name="caffe",
    title="Caffe (caffe train, caffe time)",
    marks=(
        (" caffe.cpp:", 0.5),
        (" solver.cpp:", 0.3),
        (" net.cpp:", 0.2),
        ("*** Benchmark begins ***", 0.2),
        (" iters), loss = ", 0.3),
        (" forward-backward time: ", 0.3),
        ("\tforward: ", 0.2),
        ("Solver performance on device ", -1.0),
        (" iter), loss = ", -1.0),
        (" clusters.cpp:", -1.0),
    ),
    parser=CaffeParser,
)
