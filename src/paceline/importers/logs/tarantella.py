"""Tarantella and Keras: the progress of ``fit`` on rank 0."""

import re

from paceline.importers.logs.parsing.log_lines import LogLine
from paceline.importers.logs.parsing.log_reader import LineParser, LineRule, ProgramReader
from paceline.importers.logs.parsing.parsed_log import StepRecord
from paceline.importers.logs.parsing.printed_numbers import NUMBER, count, duration, finite

_PROGRESS = re.compile(r"^\s*(\d+)/(\d+) (?:\[[=>.]*\]|[━╸╺\s]+|-)")
_PER_STEP = re.compile(rf"\b({NUMBER})(s|ms|us|µs)/(step|sample)\b")
_ELAPSED = re.compile(r"(?:^|[\s-])(?:(\d+)h:?)?(?:(\d+)(?:m:?|:))?(\d+)s(?=\s|$)")
_EPOCH_END = re.compile(r"^\s*(\d+)/\1 (?:\[=|━|- \d).*\d[mu]?s/(?:step|sample)\b", re.M)
_LOSS = re.compile(rf"\bloss: ({NUMBER})")
COARSE = 0.1
"""Relative rounding error of a step time that is worth a warning."""
_UNITS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6}


class TarantellaParser(LineParser):
    """State of one log with Keras progress."""

    program = "tarantella"
    ignored = re.compile(
        r"\[TNT|\[\w+\]\s*(?:INFO|DEBUG|WARN)|Epoch \d+/\d+|Model: |[_=]{5,}|Total params"
        r"|\d{4}-\d\d-\d\d |WARNING|Trainable|Non-trainable|\s*$"
    )

    def __init__(self) -> None:
        super().__init__()
        self._epoch = 0
        self._epochs: int | None = None
        self._steps_done = 0
        self._is_tarantella = False
        self._samples: tuple[int, float] | None = None
        self._size: int | None = None
        self.rules = (
            self.keep("", r"^Train on (\d+) samples", "_size", count),
            LineRule("", re.compile(r"^Epoch (\d+)/(\d+)\s*$"), self._start_epoch),
            LineRule("", re.compile(r"\bgaspi_run\b.*? -n (\d+)"), self._ranks),
            LineRule("", re.compile(r"\btarantella\b.*? -n (\d+)"), self._ranks),
            LineRule("", re.compile(r"^\[(?:TNT|tnt)|\btarantella\b"), self._tarantella_line),
            LineRule("/step", _PROGRESS, self._progress),
            LineRule("/sample", _PROGRESS, self._progress),
            LineRule("", _PROGRESS, self.skip),
        )

    def finish(self) -> None:
        """Mark the first of several epochs as warm-up: it builds the graph."""
        log = self.log
        if not self._is_tarantella:
            log.program = "keras"
        if len(log.steps) > 1:
            first = log.steps[0]
            log.steps[0] = StepRecord(first.index, first.seconds, first.count, warm_up=True)
        if self._samples is not None:
            samples, seconds = self._samples
            log.rate(samples / seconds, "samples over time of the last epoch")

    def _start_epoch(self, match: re.Match[str], line: LogLine) -> None:
        self._epoch, self._epochs = count(match[1]) or 0, count(match[2])

    def _ranks(self, match: re.Match[str], line: LogLine) -> None:
        self._is_tarantella = True
        self.log.ranks = count(match[1]) or None

    def _tarantella_line(self, match: re.Match[str], line: LogLine) -> None:
        self._is_tarantella = True

    def _progress(self, match: re.Match[str], line: LogLine) -> None:
        done, total = count(match[1]), count(match[2])
        per_step = _PER_STEP.search(line.text)
        if not done or done != total or per_step is None:
            return
        self.log.finished = self._epoch == self._epochs
        elapsed = _elapsed_seconds(line.text)
        unit = _UNITS[per_step[2]]
        seconds = duration(per_step[1], unit)
        if seconds is None:
            return
        loss = _LOSS.search(line.text)
        if loss is not None:
            self.log.loss(self._epoch, finite(loss[1]))
        # Keras before 2.4 counts samples ("Train on N samples"), and calls each of them a step.
        if per_step[3] == "sample" or done == self._size:
            if elapsed:
                self._samples = (done, elapsed)
            return
        rounding = 0.5 * unit / seconds
        if elapsed and 0.5 / elapsed < rounding:  # the finer of two rounded figures
            seconds, rounding = elapsed / done, 0.5 / elapsed
        if rounding > COARSE:
            self.log.warn(
                f"step times are rounded to {unit:g} s: errors up to {100 * rounding:.0f} %"
            )
        self._steps_done += done
        self.log.step(self._steps_done, seconds, done)


def _elapsed_seconds(text: str) -> float | None:
    """Whole seconds of the epoch as Keras prints them (``12s``, ``2:05``)."""
    match = _ELAPSED.search(text)
    if match is None:
        return None
    hours, minutes, seconds = (count(part or "0") or 0 for part in match.groups())
    return float(hours * 3600 + minutes * 60 + seconds) or None


READER = ProgramReader(
    name="tarantella",
    title="Tarantella and Keras fit",
    marks=(
        ("[TNT_CLI]", 0.9),
        ("gaspi_run", 0.5),
        ("tarantella", 0.4),
    ),
    parser=TarantellaParser,
    look=lambda head: 0.6 if _EPOCH_END.search(head) else 0.0,
)
