"""CNTK: BrainScript and Python training logs, alone or concatenated from several MPI ranks."""

import re

from paceline.measurement.readers.builder import MOST_RECORDS
from paceline.measurement.readers.lines import LogLine
from paceline.measurement.readers.numbers import NUMBER, count, duration, finite, positive
from paceline.measurement.readers.parsed_log import RateScope
from paceline.measurement.readers.reader import LineParser, LineRule, ProgramReader

# One lazy ".*?" per pattern at most: a long damaged line must not cost quadratic time.
_MINIBATCHES = re.compile(
    rf"Epoch\[\s*(\d+) of \d+\]-Minibatch\[\s*(\d+)-\s*(\d+)(?:, *{NUMBER}%)?\]: \S.*?"
    rf"time = ({NUMBER})s; samplesPerSecond = {NUMBER}"
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
        self._progress: dict[int | None, tuple[int, int, int]] = {}
        self._epochs: dict[int, tuple[float, float]] = {}
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
            LineRule("", re.compile(r"Using (\d+) CPU threads"), self._threads),
            LineRule("__COMPLETED__", re.compile("__COMPLETED__"), self._completed),
            LineRule('Action "train" complete', re.compile("complete"), self._completed),
        )

    def take(self, line: LogLine) -> bool:
        """A concatenated log may give each line its rank; the rule sees the rest."""
        return super().take(line) or line.text.startswith(("#", "\t"))

    def finish(self) -> None:
        """Rate of the finished epochs where no minibatch was timed."""
        log = self.log
        if log.steps or log.throughput is not None or not self._epochs:
            return
        samples = sum(samples for samples, _ in self._epochs.values())
        seconds = sum(seconds for _, seconds in self._epochs.values())
        log.rate(samples / seconds, "samples over time of the finished epochs")

    def _minibatches(self, match: re.Match[str], line: LogLine) -> None:
        epoch, first, last = count(match[1]), count(match[2]), count(match[3])
        seconds = duration(match[4])
        if epoch is None or first is None or last is None or last < first or seconds is None:
            return
        steps = last - first + 1
        index = self._steps_before(epoch, last, line.rank) + last
        loss, samples = _criterion(match[0])
        if samples:
            self.log.global_batch = samples / steps
        self.log.loss(index, loss)
        self.log.step(index, seconds / steps, steps, line.rank)

    def _steps_before(self, epoch: int, last: int, rank: int | None) -> int:
        """Minibatches of the epochs before this one, since each epoch counts from 1."""
        known_epoch, before, known_last = self._progress.get(rank, (epoch, 0, 0))
        if epoch > known_epoch:
            before += known_last
        if rank in self._progress or len(self._progress) < MOST_RECORDS:
            self._progress[rank] = (epoch, before, last)
        return before

    def _finished_epoch(self, match: re.Match[str], line: LogLine) -> None:
        epoch, seconds = count(match[1]), duration(match[3])
        loss, samples = _criterion(match[0])
        if epoch is None or not samples or seconds is None or len(self._epochs) >= MOST_RECORDS:
            return
        self._epochs[epoch] = (samples, seconds)
        self.log.facts["epoch_seconds"] = seconds
        if "[Training]" not in match[0]:
            self.log.loss(epoch, loss)
        if match[2] is not None and count(match[2]) == epoch:
            self.log.finished = True

    def _loop(self, match: re.Match[str], line: LogLine) -> None:
        self.log.ranks = count(match[3] or "1") or self.log.ranks
        if match[1] is not None:
            self.log.facts["parallel"] = match[1]
            self.log.facts["gradient_bits"] = match[4]

    def _sync(self, match: re.Match[str], line: LogLine) -> None:
        total, per_worker = positive(match[2]), positive(match[3])
        if total is None:
            return
        self.log.rate(total * 1e3, "totalThroughput of the last sync", scope=RateScope.GLOBAL)
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

    def _threads(self, match: re.Match[str], line: LogLine) -> None:
        self.log.facts["threads_per_rank"] = match[1]

    def _completed(self, match: re.Match[str], line: LogLine) -> None:
        self.log.finished = True


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
