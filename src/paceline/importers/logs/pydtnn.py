"""PyDTNN: the standard output of ``pydtnn_benchmark`` (rank 0 prints)."""

import re

from paceline.importers.logs.parsing.log_lines import LogLine
from paceline.importers.logs.parsing.log_reader import LineParser, LineRule, ProgramReader
from paceline.importers.logs.parsing.printed_numbers import (
    NUMBER,
    count,
    duration,
    finite,
    positive,
)

_OPTION = re.compile(r"^\s{0,4}([\w-]{1,40})\s*: (\S.*)$")
_BAR = re.compile(
    rf"Epoch (\d+)/(\d+):\s+\d+%\|[^|]*\|\s*(\d+)/(\d+) \[\S+?<\S+?, +({NUMBER}|\?) samples/s"
    rf"(?:.*?\bcce: ({NUMBER}))?"
)
_REPORT = re.compile(
    rf"Training(?: and validation)? (time|throughput)( \(from model(?:, [^)]*)?\))?: ({NUMBER}) s"
)
_MEMORY = re.compile(rf"Training maximum memory allocated: ({NUMBER}) MiB")

_KEPT_OPTIONS = {
    "parallel": "parallel",
    "non_blocking_mpi": "non_blocking_mpi",
    "threads_per_process": "threads_per_rank",
    "optimizer_name": "optimiser",
    "dataset_name": "dataset",
    "use_synthetic_data": "synthetic_data",
}


class PydtnnParser(LineParser):
    """State of one PyDTNN log."""

    program = "pydtnn"
    ignored = re.compile(
        r"[+|]|\*{4} |\s*-{5,}|Time per epoch|Training (?:and validation )?time per epoch"
        r"|Training mean memory|Testing |Writing simple tracer|, val_|  (?:loss|return) "
        r"|\S+\.py:\d+|\[pydtnn[\w.]*\] \[\w+\]:|(?:real|user|sys)\s+\d+m|Epoch \d+/\d+:|options$"
    )

    def __init__(self) -> None:
        super().__init__()
        self._options: dict[str, str] = {}
        self._report: dict[str, float] = {}
        self._bar_rate: float | None = None
        self.rules = (
            LineRule("Training", _REPORT, self._report_line),
            LineRule("Training maximum", _MEMORY, self._memory),
            LineRule("Training time per epoch", re.compile("per epoch"), self.skip),
            LineRule("Training and validation time per epoch", re.compile("per epoch"), self.skip),
            LineRule("Training mean", re.compile("mean memory"), self.skip),
            LineRule("**** Training...", re.compile(r"\*{4} Training"), self.skip),
            LineRule("samples/s", _BAR, self._bar),
            self.keep(" model...", r"\*{4} (\S{1,100}) model\.\.\.", "model"),
            LineRule("Total parameters", re.compile(r"Total parameters\s+(\d+)"), self._parameters),
            LineRule("**** Done", re.compile(r"\*{4} Done"), self.end),
            LineRule("", _OPTION, self._option),
        )

    def finish(self) -> None:
        """Take batch, ranks, steps and throughput from the options and the final report."""
        log, options = self.log, self._options
        log.model = options.get("model_name", options.get("model", log.model))
        log.ranks = count(options.get("mpi_processes", "")) or None
        per_rank = count(options.get("batch_size", ""))
        log.global_batch = count(options.get("global_batch_size", "")) or None
        if log.global_batch is None and per_rank:
            log.global_batch = per_rank * (log.ranks or 1)
        if "float32" in options.get("dtype", ""):
            log.precision = "fp32"
        for option, fact in _KEPT_OPTIONS.items():
            if option in options:
                log.facts[fact] = options[option]
        self._set_throughput()
        self._set_steps()

    def _set_throughput(self) -> None:
        """Prefer the figure of the last half, which excludes the warm-up of each epoch."""
        for key, source in (
            ("throughput last half", "Training throughput (from model, last half of each epoch)"),
            ("throughput model", "Training throughput (from model)"),
            ("throughput", "Training throughput"),
        ):
            if key in self._report:
                self.log.rate(self._report[key], source)
                return
        if self._bar_rate is not None:
            self.log.rate(self._bar_rate, "progress bar")
            self.log.warn("truncated before its final report: using the rate of the progress bar")

    def _set_steps(self) -> None:
        """Add two records, first and last half of the epochs: steps are not printed."""
        report, batch = self._report, self.log.global_batch
        total, rate = report.get("time model"), report.get("throughput model")
        if total is None or rate is None or not batch:
            return
        steps = round(rate * total / batch)
        if steps < 1:
            return
        estimate = report.get("time last half")
        epochs = count(self._options.get("num_epochs", "")) or 1
        early = epochs * ((steps // epochs) // 2)
        if estimate is None or not 0 < early < steps:
            self.log.step(steps, total / steps, steps)
            return
        late_seconds = estimate / steps
        early_seconds = (total - late_seconds * (steps - early)) / early
        if early_seconds > 0:
            self.log.step(early, early_seconds, early, warm_up=True)
        self.log.step(steps, late_seconds, steps - early)

    def _report_line(self, match: re.Match[str], line: LogLine) -> None:
        qualifier = match[2] or ""
        which = " last half" if "last half" in qualifier else " model" if qualifier else ""
        value = duration(match[3]) if match[1] == "time" else positive(match[3])
        if value is not None:
            self._report[match[1] + which] = value

    def _bar(self, match: re.Match[str], line: LogLine) -> None:
        rate = positive(match[5])
        if rate is not None:
            self._bar_rate = rate
        samples = count(match[3])
        if match[6] and samples is not None:
            self.log.loss(samples, finite(match[6]))

    def _memory(self, match: re.Match[str], line: LogLine) -> None:
        mebibytes = positive(match[1])
        if mebibytes is not None:
            self.log.facts["memory_bytes"] = mebibytes * 2**20

    def _parameters(self, match: re.Match[str], line: LogLine) -> None:
        parameters = count(match[1])
        if parameters is not None:
            self.log.facts["parameters"] = float(parameters)

    def _option(self, match: re.Match[str], line: LogLine) -> None:
        if len(self._options) < 500:
            self._options.setdefault(match[1].replace("-", "_"), match[2].strip())


READER = ProgramReader(
    name="pydtnn",
    title="PyDTNN (pydtnn_benchmark)",
    marks=(
        ("Performance counter training report", 0.6),
        ("pydtnn", 0.4),
        ("throughput (from model", 0.4),
        ("mpi_processes ", 0.4),
        ("non_blocking_mpi ", 0.3),
        (" samples/s, cce: ", 0.3),
    ),
    parser=PydtnnParser,
)
