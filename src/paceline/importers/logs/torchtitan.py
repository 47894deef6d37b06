"""torchtitan: step lines with tokens per second per device.

Format: torchtitan/components/metrics.py of pytorch/torchtitan.
"""

import re
from math import prod

from paceline.importers.logs.parsing.line_clock import stamp
from paceline.importers.logs.parsing.log_lines import LogLine
from paceline.importers.logs.parsing.log_reader import LineParser, LineRule, ProgramReader
from paceline.importers.logs.parsing.parsed_log import RateScope, RateUnit
from paceline.importers.logs.parsing.printed_numbers import NUMBER, count, finite, positive

_STEP = re.compile(rf"(?<!validate )\bstep:\s*(\d+)\s+loss:\s*({NUMBER}|-?nan|-?inf)\b")
_RATE = re.compile(rf"\b(?:tps|wps): ({NUMBER})")
_UTILISATION = re.compile(rf"\bmfu: ({NUMBER})%")
_MEMORY = re.compile(rf"\bmemory: +({NUMBER})GiB")
_BATCH = re.compile(
    r"local batch size (\d+), global batch size (\d+), (?:gradient accumulation steps (\d+), )?"
    r"sequence length (\d+)"
)
_MESH = re.compile(r"Building \d+-D device mesh with \[[^\]]*\], \[([\d, ]+)\]")
_DEGREES = re.compile(r"(?:Building device mesh with parallelism|parallelism): (\w+=\d.*)$")
_MODEL = re.compile(r"Model (\S+(?: \S+)?) size: ([\d,]+) total parameters")


class TorchtitanParser(LineParser):
    """State of one torchtitan log."""

    program = "torchtitan"
    ignored = re.compile(
        r"(?:\[titan\] )?\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[,.]\d+ - |W\d{4} |\*{5,}|\+ |warnings"
    )

    def __init__(self) -> None:
        super().__init__()
        self._lines: list[tuple[int, float | None, float | None, int | None]] = []
        self.rules = (
            LineRule("step:", _STEP, self._step),
            LineRule("validate step:", re.compile("validate step:"), self.skip),
            LineRule("local batch size", _BATCH, self._batch),
            LineRule("device mesh", _MESH, self._mesh),
            LineRule("parallelism: ", _DEGREES, self._degrees),
            LineRule("device mesh", re.compile("device mesh"), self.skip),
            LineRule("total parameters", _MODEL, self._model),
            LineRule("Training completed", re.compile("Training completed"), self.end),
        )

    def finish(self) -> None:
        """Compute step times from tokens and rate, else from time stamps."""
        log = self.log
        tokens = None
        if log.global_batch and log.sequence_length and log.ranks:
            tokens = log.global_batch * log.sequence_length / log.ranks
        last: dict[int | None, tuple[int, float | None]] = {}
        for index, rate, clock, rank in self._lines:
            step, before = last.get(rank, (0, None))
            last[rank] = (index, clock)
            steps = index - step if index > step else 1  # a line covers the steps since the last
            if tokens is not None and rate is not None:
                log.step(index, tokens / rate, steps, rank, warm_up=index == 1)
            elif clock is not None and before is not None and clock > before:
                log.step(index, (clock - before) / steps, steps, rank)
                log.warn(
                    "step times are differences of time stamps: the log lacks batch size or ranks"
                )
        self._set_throughput()

    def _set_throughput(self) -> None:
        rates = [rate for index, rate, _, _ in self._lines if rate is not None and index > 1]
        rates = rates or [rate for _, rate, _, _ in self._lines if rate is not None]
        log = self.log
        if not rates:
            return
        if log.ranks and log.global_batch and log.sequence_length:
            return  # the builder divides sequences by the mean step
        mean = len(rates) / sum(1 / rate for rate in rates)
        log.rate(mean, "mean of tps", RateUnit.TOKENS, RateScope.PER_DEVICE)

    def _step(self, match: re.Match[str], line: LogLine) -> None:
        index, rate = count(match[1]), _RATE.search(line.text)
        if not index or len(self._lines) >= 100_000:
            return
        self._lines.append(
            (index, positive(rate[1]) if rate else None, stamp(line.text), line.rank)
        )
        self.log.loss(index, finite(match[2]))
        for fact, pattern, scale in (
            ("model_flops_utilisation", _UTILISATION, 0.01),
            ("memory_bytes", _MEMORY, 2.0**30),
        ):
            found = pattern.search(line.text)
            value = finite(found[1]) if found else None
            if value is not None:
                self.log.facts[fact] = value * scale

    def _batch(self, match: re.Match[str], line: LogLine) -> None:
        self.log.global_batch = count(match[2]) or None
        self.log.sequence_length = count(match[4]) or None
        self.log.facts["micro_batch"] = float(count(match[1]) or 0)

    def _mesh(self, match: re.Match[str], line: LogLine) -> None:
        degrees = [count(part) or 1 for part in match[1].split(",")]
        if prod(degrees[:8]) < 10**7:
            self.log.ranks = prod(degrees[:8])

    def _degrees(self, match: re.Match[str], line: LogLine) -> None:
        """Multiply the degrees; expert-parallel degrees reuse ranks of the others."""
        degrees = dict(re.findall(r"(\w+)=(\d{1,6})", match[1]))
        ranks = prod(int(n) for name, n in degrees.items() if name not in ("ep", "etp"))
        if 0 < ranks < 10**7:
            self.log.ranks = ranks

    def _model(self, match: re.Match[str], line: LogLine) -> None:
        self.log.model = match[1][:100]
        self.log.facts["parameters"] = float(count(match[2]) or 0)


READER = ProgramReader(
    name="torchtitan",
    title="torchtitan",
    marks=(
        ("[titan]", 0.5),
        (" tps: ", 0.4),
        (" wps: ", 0.4),
        ("grad_norm: ", 0.2),
        (" mfu: ", 0.3),
        ("torchtitan", 0.3),
    ),
    parser=TorchtitanParser,
)
