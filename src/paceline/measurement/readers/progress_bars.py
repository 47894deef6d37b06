"""tqdm's bars: steps and the time they took, from any program that shows one."""

import re

from paceline.measurement.readers.lines import LogLine
from paceline.measurement.readers.numbers import NUMBER, count, positive
from paceline.measurement.readers.parsed_log import RateUnit
from paceline.measurement.readers.reader import LineParser, LineRule, ProgramReader

CLOCK_SECONDS = 1.0
"""What a bar's clock is rounded to."""

_BAR = re.compile(
    rf"^(?P<name>[^|]{{0,80}}?)\s*\d{{1,3}}%\|[^|]*\| *(?P<done>\d+)/(?P<total>\d+) "
    rf"\[(?:(?P<hours>\d+):)?(?P<minutes>\d+):(?P<seconds>\d\d)<[^,\]]*,\s*"
    rf"(?P<rate>{NUMBER})(?P<unit>it/s|s/it)"
)
_ANY_BAR = re.compile(r"%\|[^|\n]{0,200}\| *\d+/\d+ \[[\d:]+<[^\n]{0,40}(?:it/s|s/it)")
_NOT_TRAINING = re.compile(
    r"valid|eval|test|sanity|predict|download|loading|map|token|generat|fetch|filter|resolv", re.I
)


class ProgressBarParser(LineParser):
    """State of one log with bars; a bar that begins again is a new one."""

    program = "tqdm"
    ignored = re.compile(r".*")

    def __init__(self) -> None:
        super().__init__()
        self._bars: list[_Bar] = []
        self.rules = (LineRule("%|", _BAR, self._state),)

    def _state(self, match: re.Match[str], line: LogLine) -> None:
        name = match["name"].strip(" :")
        done, total = count(match["done"]), count(match["total"])
        rate = positive(match["rate"])
        if _NOT_TRAINING.search(name) or not done or not total or rate is None:
            return
        hours, minutes = int(match["hours"] or 0), int(match["minutes"])
        seconds = 3600.0 * hours + 60.0 * minutes + int(match["seconds"])
        per_second = rate if match["unit"] == "it/s" else 1 / rate
        if not self._bars or self._bars[-1].is_another(name, done, total):
            if len(self._bars) >= 10_000:
                return
            self._bars.append(_Bar(name, total))
        self._bars[-1].update(done, seconds, per_second)

    def finish(self) -> None:
        """The bar with the most steps is training; bars of its name are its epochs."""
        if not self._bars:
            return
        totals: dict[str, int] = {}
        for bar in self._bars:
            totals[bar.kind] = totals.get(bar.kind, 0) + bar.done
        main = max(totals, key=lambda kind: totals[kind])
        done, log = 0, self.log
        for bar in self._bars:
            if bar.kind != main:
                continue
            done += bar.done
            log.step(done, bar.step_seconds, bar.done)
            if bar.is_rounded:
                log.warn("bars of a few seconds: the rate that they print is taken, not the time")
            else:
                log.prints(
                    bar.rate, f"rate of bar '{bar.name or 'without a name'}'", RateUnit.STEPS
                )
        log.finished = self._bars[-1].done == self._bars[-1].total


class _Bar:
    """One bar: how far it came and when."""

    def __init__(self, name: str, total: int) -> None:
        self.name, self.total = name, total
        self.done, self.seconds, self.rate = 0, 0.0, 0.0

    def is_another(self, name: str, done: int, total: int) -> bool:
        return name != self.name or total != self.total or done < self.done

    def update(self, done: int, seconds: float, rate: float) -> None:
        self.done, self.seconds, self.rate = done, seconds, rate

    @property
    def kind(self) -> str:
        """Its name without numbers: epochs of one training are one kind."""
        return re.sub(r"\d+", "", self.name)

    @property
    def is_rounded(self) -> bool:
        """Whether its clock is too coarse to tell the time of its steps."""
        return self.seconds < 20 * CLOCK_SECONDS

    @property
    def step_seconds(self) -> float:
        return 1 / self.rate if self.is_rounded else self.seconds / self.done


def _has_bar(head: str) -> float:
    """As little as suffices: most programs with a log of their own show bars too."""
    return 0.5 if _ANY_BAR.search(head) else 0.0


READERS = (
    ProgramReader(
        "tqdm",
        "progress bars (tqdm; Lightning's and Accelerate's console)",
        (),
        ProgressBarParser,
        _has_bar,
    ),
)
