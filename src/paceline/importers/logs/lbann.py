"""LBANN: the epoch summary and the timer callback's mini-batch statistics."""

import re

from paceline.importers.logs.parsing.log_lines import LogLine
from paceline.importers.logs.parsing.log_reader import LineParser, LineRule, ProgramReader
from paceline.importers.logs.parsing.printed_numbers import NUMBER, count, duration, finite

_STATISTICS = re.compile(
    rf"^(.{{1,200}}?) training epoch (\d+) mini-batch time statistics : ({NUMBER})s mean, "
    rf"(?:({NUMBER}|-?nan)s median, )?({NUMBER})s max, ({NUMBER})s min, ({NUMBER}|-?nan)s stdev"
)
_OBJECTIVE = re.compile(rf"training epoch (\d+) objective function : ({NUMBER})")
_RUN_TIME = re.compile(rf"training epoch (\d+) run time : ({NUMBER})s")
_OTHER_METRIC = re.compile(r"(?:training epoch \d+|validation|test) (?!mini-batch|run)\S.* : \S")
_UNTRAINED = re.compile(r"\b(?:validation|test) (?:mini-batch time|run time|objective)")


class LbannParser(LineParser):
    """State of one LBANN log."""

    program = "lbann"
    ignored = re.compile(
        r"-{5,}|\s+\w|\s*local MB|\[\d+\] Epoch|(?:Model|model)\S* "
        r"|[A-Z][\w ]+(?:\([\w ]+\))?(?::|$)"
    )

    def __init__(self) -> None:
        super().__init__()
        self._steps_per_epoch: int | None = None
        self._batch: int | None = None
        self._per_trainer: int | None = None
        self._total_processes: int | None = None
        self._processes_per_node: int | None = None
        self._trainers: dict[str, int] = {}
        self._epochs: set[int] = set()
        self.rules = (
            LineRule("mini-batch time statistics", _STATISTICS, self._statistics),
            LineRule("", _UNTRAINED, self.skip),
            LineRule("objective function : ", _OBJECTIVE, self._objective),
            LineRule(" run time : ", _RUN_TIME, self._run_time),
            self.keep("iter/epoch = ", r"iter/epoch = \[\s*(\d+)", "_steps_per_epoch", count),
            self.keep("lobal MB = ", r"[Gg]lobal MB = \[\s*(\d+)", "_batch", count),
            self.keep("Trainers", r"Trainers\s*: (\d+)", "trainers", count),
            self.keep("per trainer", r"rocesses per trainer\s*: (\d+)", "_per_trainer", count),
            self.keep("number of processes", r"processes\s*: (\d+)", "_total_processes", count),
            self.keep("Processes on node", r"node\s*: (\d+)", "_processes_per_node", count),
            self.keep("", r"LBANN version: (\S{1,40})", "version"),
            LineRule("", _OTHER_METRIC, self.skip),
        )

    def finish(self) -> None:
        """Take ranks from the header; each trainer has its own mini-batch."""
        log = self.log
        trainers = max(1, len(self._trainers), int(log.facts.get("trainers", 1)))
        log.ranks = self._total_processes
        if log.ranks is None and self._per_trainer is not None:
            log.ranks = self._per_trainer * trainers
        if log.ranks and self._processes_per_node:
            log.nodes = -(-log.ranks // self._processes_per_node)
        if self._batch is not None:
            log.global_batch = float(self._batch * trainers)
        if len(self._epochs) > 1:
            self._mark_first_epoch()

    def _mark_first_epoch(self) -> None:
        """Mark the first epoch as warm-up: it includes the setup of kernels and files."""
        first = min(record.index for record in self.log.steps)
        self.log.steps = [
            type(record)(record.index, record.seconds, record.count, record.rank, True)
            if record.index == first
            else record
            for record in self.log.steps
        ]

    def _statistics(self, match: re.Match[str], line: LogLine) -> None:
        epoch, mean = count(match[2]), duration(match[3])
        if epoch is None or mean is None:
            return
        if match[1] not in self._trainers and len(self._trainers) < 10_000:
            self._trainers[match[1]] = len(self._trainers)
        if len(self._epochs) < 100_000:
            self._epochs.add(epoch)
        steps = self._steps_per_epoch or 1
        self.log.step((epoch + 1) * steps, mean, steps, self._trainers.get(match[1]))
        self.log.model = self.log.model or re.sub(r" \(instance \d+\)$", "", match[1])
        for fact, text in (("median_seconds", match[4]), ("stdev_seconds", match[7])):
            value = None if text is None else finite(text)
            if value is not None:
                self.log.facts[fact] = value

    def _objective(self, match: re.Match[str], line: LogLine) -> None:
        epoch = count(match[1])
        if epoch is not None:
            self.log.loss(epoch, finite(match[2]))

    def _run_time(self, match: re.Match[str], line: LogLine) -> None:
        seconds = duration(match[2])
        if seconds is not None:
            self.log.facts["epoch_seconds"] = seconds


READER = ProgramReader(
    name="lbann",
    title="LBANN (timer callback)",
    marks=(
        ("mini-batch time statistics : ", 0.8),
        ("stats formated [tr/v/te", 0.6),
        ("lobal last MB", 0.2),
        ("lbann", 0.2),
    ),
    parser=LbannParser,
)
