"""CNTK: BrainScript and Python training logs, alone or concatenated from several MPI ranks."""

import re
from dataclasses import dataclass

from paceline.importers.logs.parsing.agreement import agree, mean_rate
from paceline.importers.logs.parsing.log_builder import MOST_RECORDS
from paceline.importers.logs.parsing.log_lines import LogLine
from paceline.importers.logs.parsing.log_reader import LineParser, LineRule, ProgramReader
from paceline.importers.logs.parsing.printed_numbers import (
    NUMBER,
    count,
    duration,
    finite,
    positive,
)

# One lazy ".*?" per pattern at most: a long damaged line must not cost quadratic time.
_MINIBATCHES = re.compile(
    rf"Epoch\[\s*(\d+) of \d+\]-Minibatch\[\s*(\d+)-\s*(\d+)(?:, *{NUMBER}%)?\]: \S.*?"
    rf"time = ({NUMBER})s; samplesPerSecond = ({NUMBER})"
)
_CRITERION = re.compile(rf" = ({NUMBER}|-?nan|-?inf) \* (\d+)")
_FINISHED = re.compile(
    rf"Finished Epoch ?\[\s*(\d+)(?: of (\d+))?\]: \[Training\] .*?epochTime=({NUMBER})s"
)
_FINISHED_PYTHON = re.compile(
    rf"Finished Epoch ?\[\s*(\d+)(?: of (\d+))?\]: .*? ({NUMBER})s "
    rf"\(\s*{NUMBER} samples(?:/s| per second)\)"
)
_LOOP = re.compile(
    r"Starting minibatch loop(?:, (\w+) training \(myRank = (\d+), numNodes = (\d+), "
    r"numGradientBits = (\d+)\))?"
)
_SYNC = re.compile(
    rf"(\d+)-th sync: totalThroughput = ({NUMBER})k samplesPerSecond ?, "
    rf"throughputPerWorker = ({NUMBER})k samplesPerSecond"
)
_VERSION = re.compile(r"\bCNTK (\d\S*)")
_MINIBATCH_PYTHON = re.compile(
    rf"^ ?Minibatch\[\s*\d+-\s*(\d+)\]: loss = ({NUMBER}|-?nan|-?inf) \* \d+"
)


@dataclass
class _Progress:
    """Position of one rank: minibatches count from 1 in each epoch, epochs in each train action."""

    action: int = 0
    epoch: int = 0
    last: int = 0
    steps_before: int = 0
    epochs_finished: int = 0

    def index_of(self, epoch: int, first: int, last: int) -> int:
        """Number of the step within the whole log."""
        if epoch < self.epoch or (epoch == self.epoch and first <= self.last):
            self._next_action()
        elif epoch > self.epoch:
            self.steps_before += self.last
        self.epoch, self.last = epoch, last
        return self.steps_before + last

    def finish_epoch(self, epoch: int) -> int:
        """The train action that a finished epoch belongs to."""
        if epoch <= self.epochs_finished and epoch != self.epoch:
            self._next_action()
        self.epochs_finished = epoch
        return self.action

    def _next_action(self) -> None:
        self.steps_before += self.last
        self.action += 1
        self.epoch = self.last = self.epochs_finished = 0


class CntkParser(LineParser):
    """State of one CNTK log."""

    program = "cntk"
    ignored = re.compile(
        r"\d\d/\d\d/\d{4} \d\d:\d\d:\d\d:|\s|[{}(#]|CPU info|Model has|Creating |Allocating "
        r"|Memory |SimpleNetwork|Initializing |Training \d|Learning rate|Momentum|Redirecting "
        r"|[A-Za-z]:\\|Node |Validating |Post-processing|Requested nodes|ping |mpihelper|GPU|-{5,}"
    )

    def __init__(self) -> None:
        super().__init__()
        self._progress: dict[int | None, _Progress] = {}
        self._epochs: dict[tuple[int | None, int, int], tuple[float, float]] = {}
        self._line_rates: list[tuple[float, float]] = []
        self._counted_rates: list[tuple[float, float]] = []
        self._sync_rates: list[float] = []
        self.rules = (
            LineRule("-Minibatch[", _MINIBATCHES, self._minibatches),
            LineRule("Finished Epoch", re.compile(r"\[Validate\]|\[Evaluation\]"), self.skip),
            LineRule("Finished Epoch", _FINISHED, self._finished_epoch),
            LineRule("Finished Epoch", _FINISHED_PYTHON, self._finished_epoch),
            LineRule("Starting minibatch loop", _LOOP, self._loop),
            LineRule("-th sync:", _SYNC, self._sync),
            LineRule("Minibatch[", _MINIBATCH_PYTHON, self._minibatch_python),
            LineRule("", _VERSION, self._version),
            LineRule("", re.compile(r"Training (\d+) parameters"), self._parameters),
            self.keep("", r"Using (\d+) CPU threads", "threads_per_rank"),
            LineRule("__COMPLETED__", re.compile("__COMPLETED__"), self.end),
            LineRule('Action "train" complete', re.compile("complete"), self.end),
        )

    def take(self, line: LogLine) -> bool:
        """Apply the rules; comments and tab-indented lines count as read."""
        return super().take(line) or line.text.startswith(("#", "\t"))

    def finish(self) -> None:
        """Compute throughput from samples and times, and check the printed rates against it."""
        log = self.log
        actions = max((rank.action for rank in self._progress.values()), default=0) + 1
        if actions > 1:
            log.warn(f"the log has {actions} train actions; their steps are concatenated")
        if self._sync_rates:
            # Syncs have equal numbers of samples: the harmonic mean is total samples over time.
            log.rate(
                len(self._sync_rates) / sum(1 / rate for rate in self._sync_rates),
                "mean totalThroughput of the syncs",
            )
        elif not log.steps and self._epochs:
            log.rate(self._epoch_rate(), "samples over time of the finished epochs")
        self._check_lines()

    def _check_lines(self) -> None:
        """Check the rate of each line against its samples and seconds."""
        printed, counted = mean_rate(self._line_rates), mean_rate(self._counted_rates)
        if self._sync_rates and counted and self.log.throughput is not None:
            total, ranks = self.log.throughput.per_second, max(1, len(self._progress))
            if not agree(total, counted) and not agree(total, counted * ranks):
                self.log.contradict(
                    f"sync lines print {total:,.4g} samples/s in total, but the minibatch lines "
                    f"give {counted:,.4g} per worker ({ranks} in the log)"
                )
        if printed and counted and not agree(printed, counted):
            self.log.contradict(
                f"minibatch lines print {printed:,.4g} samples/s, but samples divided by time "
                f"give {counted:,.4g}"
            )

    def _epoch_rate(self) -> float:
        """Samples per second of the rank with the longest epochs."""
        totals: dict[int | None, tuple[float, float]] = {}
        for (rank, _, _), (samples, seconds) in self._epochs.items():
            before = totals.get(rank, (0.0, 0.0))
            totals[rank] = (before[0] + samples, before[1] + seconds)
        return min(samples / seconds for samples, seconds in totals.values())

    def _minibatches(self, match: re.Match[str], line: LogLine) -> None:
        epoch, first, last = count(match[1]), count(match[2]), count(match[3])
        seconds = duration(match[4])
        if epoch is None or first is None or last is None or last < first or seconds is None:
            return
        progress = self._of_rank(line.rank)
        if progress is None:
            return
        steps = last - first + 1
        index = progress.index_of(epoch, first, last)
        loss, samples = _criterion(match[0])
        self.log.loss(index, loss)
        self.log.step(
            index, seconds / steps, steps, line.rank, samples=samples / steps if samples else None
        )
        rate = positive(match[5])
        if samples and rate and len(self._line_rates) < MOST_RECORDS:
            self._line_rates.append((samples, rate))
            self._counted_rates.append((samples, samples / seconds))

    def _of_rank(self, rank: int | None) -> "_Progress | None":
        if rank not in self._progress and len(self._progress) >= MOST_RECORDS:
            return None
        return self._progress.setdefault(rank, _Progress())

    def _finished_epoch(self, match: re.Match[str], line: LogLine) -> None:
        epoch, seconds = count(match[1]), duration(match[3])
        loss, samples = _criterion(match[0])
        progress = self._of_rank(line.rank)
        if epoch is None or not samples or seconds is None or progress is None:
            return
        action = progress.finish_epoch(epoch)
        if len(self._epochs) < MOST_RECORDS:
            self._epochs[line.rank, action, epoch] = (samples, seconds)
        self.log.facts["epoch_seconds"] = seconds
        if "[Training]" not in match[0]:
            self.log.loss(epoch, loss)
        if match[2] is not None and count(match[2]) == epoch:
            self.log.finished = True

    def _loop(self, match: re.Match[str], line: LogLine) -> None:
        alone = "1" if line.rank is None else ""
        self.log.ranks = count(match[3] or alone) or self.log.ranks
        if match[1] is not None:
            self.log.facts["parallel"] = match[1]
            self.log.facts["gradient_bits"] = match[4]

    def _sync(self, match: re.Match[str], line: LogLine) -> None:
        total, per_worker = positive(match[2]), positive(match[3])
        if total is None:
            return
        if len(self._sync_rates) < MOST_RECORDS:
            self._sync_rates.append(total * 1e3)
        if per_worker is not None:
            self.log.ranks = round(total / per_worker) or None

    def _minibatch_python(self, match: re.Match[str], line: LogLine) -> None:
        last = count(match[1])
        if last is not None:
            self.log.loss(last, finite(match[2]))

    def _version(self, match: re.Match[str], line: LogLine) -> None:
        self.log.version = match[1][:40]

    def _parameters(self, match: re.Match[str], line: LogLine) -> None:
        parameters = count(match[1])
        if parameters is not None:
            self.log.facts["parameters"] = float(parameters)


def _criterion(text: str) -> tuple[float | None, int | None]:
    """Value and number of samples of the first criterion (``loss = 0.70 * 250``)."""
    match = _CRITERION.search(text)
    return (None, None) if match is None else (finite(match[1]), count(match[2]))


READER = ProgramReader(
    name="cntk",
    title="CNTK (BrainScript or Python)",
    marks=(
        ("samplesPerSecond = ", 0.6),
        ("Starting minibatch loop", 0.5),
        ("Finished Epoch[", 0.5),
        ("Finished Epoch [", 0.5),
        ("-th sync: totalThroughput", 0.6),
        ("CNTK 2.", 0.3),
    ),
    parser=CntkParser,
)
