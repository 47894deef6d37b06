"""Progress bars: steps and the time they took, from any program that shows one."""

import re

from paceline.measurement.readers.agreement import agree
from paceline.measurement.readers.builder import LogBuilder
from paceline.measurement.readers.lines import LogLine
from paceline.measurement.readers.numbers import NUMBER, positive
from paceline.measurement.readers.reader import LineParser, LineRule, ProgramReader

CLEAR_SECONDS = 20.0
"""A bar's clock is whole seconds: shorter times tell too little."""
PAUSE = 5.0
"""A state so many times later than usual comes after something else, such as an evaluation."""
MOST_BARS = 10_000

_CLOCK = r"(?:(?P<hours>\d{1,6}):)?(?P<minutes>\d{1,6}):(?P<seconds>\d\d)"
_COUNT = r"\d+(?:\.\d+)?[kMG]?"
_UNIT = r"(?:it|batch|batches|ba|steps?|iters?)"
_RATE = rf"(?P<rate>{NUMBER})\s?(?P<unit>{_UNIT}/s|s/{_UNIT})\b"
_TQDM = re.compile(
    rf"^(?P<name>[^|]{{0,80}}?)\s*\d{{1,3}}%(?:\|[^|]*\|)? *(?P<done>\d+)/(?P<total>\d+) "
    rf"\[{_CLOCK}<[^,\]]*,\s*{_RATE}"
)
_RICH = re.compile(
    rf"^(?P<name>[^━╸╺|]{{0,80}}?)\s*[━╸╺ ]*[━╸╺][━╸╺ ]*(?P<done>\d+)/(?P<total>\d+) "
    rf"{_CLOCK} • (?:[\d:]+|-:--:--) {_RATE}"
)
_LOGGED = re.compile(
    rf"Progress on:(?P<name>\S{{0,80}}) (?P<done>{_COUNT})it/(?P<total>{_COUNT})it "
    rf"rate:{_RATE} remaining:\S+ elapsed:{_CLOCK}"
)
_ANY_BAR = re.compile(
    r"%(?:\|[^|\n]{0,200}\|)? *\d+/\d+ \[[\d:]+<[^\n]{0,40}"
    rf"(?:{_UNIT}/s|s/{_UNIT})\b"
    r"|[━╸╺] {0,80}\d+/\d+ [\d:]+ • [\d:-]+ [\d.]+(?:it/s|s/it)"
    r"|Progress on:train \S+it/\S+it rate:[\d.]+(?:it/s|s/it)"
)
_NOT_TRAINING = re.compile(
    r"valid|eval|test|sanity|predict|download|loading|map|token|generat|fetch|filter|resolv", re.I
)


class Bars:
    """All bars of a log. Bars of one name and length are epochs of one loop."""

    def __init__(self) -> None:
        self._bars: list[_Bar] = []
        self._shown: dict[tuple[str, int], _Bar] = {}

    def rules(self) -> tuple[LineRule, ...]:
        """What bars look like: tqdm's, Rich's (Lightning), and tqdm's written as lines."""
        return (
            LineRule("%", _TQDM, self._state),
            LineRule("•", _RICH, self._state),
            LineRule("Progress on:", _LOGGED, self._state),
        )

    def _state(self, match: re.Match[str], line: LogLine) -> None:
        name = match["name"].strip(" :")
        done, total, rate = _steps(match["done"]), _steps(match["total"]), positive(match["rate"])
        if _NOT_TRAINING.search(name) or not done or not total or rate is None:
            return
        seconds = 3600.0 * int(match["hours"] or 0) + 60.0 * int(match["minutes"])
        seconds += int(match["seconds"])
        per_second = rate if match["unit"].endswith("/s") else 1 / rate
        bar = self._shown.get((name, total))
        if bar is None or done < bar.done:
            if len(self._bars) >= MOST_BARS:
                return
            bar = self._shown[name, total] = _Bar(name, total)
            self._bars.append(bar)
        bar.update(done, seconds, per_second)

    def tell(self, log: LogBuilder, total: int | None = None) -> None:
        """Steps of the bars with the most of them; with ``total``, only of bars of that length."""
        bars = [bar for bar in self._bars if total is None or bar.total == total]
        steps: dict[tuple[str, int], int] = {}
        for bar in bars:
            steps[bar.kind] = steps.get(bar.kind, 0) + bar.done
        if not steps:
            return
        main = max(steps, key=lambda kind: steps[kind])
        index = 0
        for bar in (bar for bar in bars if bar.kind == main):
            index += bar.done
            log.step(index, bar.step_seconds, bar.done)
            if bar.has_pause:
                log.warn("pauses of bars (evaluation, checkpoint) are left out")
            if bar.seconds < CLEAR_SECONDS:
                log.warn("bars of a few seconds: the rate that they print is taken, not the time")
            elif bar.is_complete:
                bar.check(log)
            log.finished = bar.is_complete


class _Bar:
    """One bar: how far it came and when.

    ``begun`` are steps and seconds of its first state, before which a program may have compiled.
    """

    def __init__(self, name: str, total: int) -> None:
        self.name, self.total = name, total
        self.done, self.seconds, self.rate = 0, 0.0, 0.0
        self.begun: tuple[int, float] = (0, 0.0)
        self._quick, self._slow = (0, 0.0), (0, 0.0)

    def update(self, done: int, seconds: float, rate: float) -> None:
        if self.done == 0:
            self.begun = (done, seconds)
        else:
            steps, taken = done - self.done, seconds - self.seconds
            if taken < CLEAR_SECONDS:
                self._quick = (self._quick[0] + steps, self._quick[1] + taken)
            elif self.has_long(steps, taken):
                self._slow = (self._slow[0] + steps, self._slow[1] + taken)
        self.done, self.seconds, self.rate = done, seconds, rate

    def has_long(self, steps: int, seconds: float) -> bool:
        """Whether an interval is much longer than the short ones before it."""
        usual_steps, usual = self._quick
        return usual > 0 and steps > 0 and seconds / steps > PAUSE * usual / usual_steps

    @property
    def kind(self) -> tuple[str, int]:
        """Its name without numbers and its length: epochs of one training are one kind."""
        return re.sub(r"\d+", "", self.name), self.total

    @property
    def is_complete(self) -> bool:
        return self.done == self.total

    @property
    def has_pause(self) -> bool:
        return self._slow[0] > 0

    @property
    def step_seconds(self) -> float:
        """Seconds of a step: by the clock since its first state, else since its beginning."""
        if self.seconds < CLEAR_SECONDS:
            return 1 / self.rate
        steps = self.done - self.begun[0] - self._slow[0]
        seconds = self.seconds - self.begun[1] - self._slow[1]
        if steps > 0 and seconds >= CLEAR_SECONDS:
            return seconds / steps
        return self.seconds / self.done

    def check(self, log: LogBuilder) -> None:
        """A complete bar prints the mean rate since it began; before, one of the last steps."""
        mean = self.done / self.seconds
        if not agree(self.rate, mean):
            log.contradict(
                f"bar '{self.name or 'without a name'}': {self.done:,} steps in "
                f"{self.seconds:,.0f} s are {mean:,.4g} steps/s, but it prints {self.rate:,.4g}"
            )


def _steps(text: str) -> int | None:
    """A number of steps, also as in 1.25k; None where it cannot be."""
    steps = positive(text)
    if steps is None:
        return None
    return round(steps) if 1 <= steps < 1e12 else None


class ProgressBarParser(LineParser):
    """A log that tells its steps by bars alone."""

    program = "tqdm"
    ignored = re.compile(r".*")

    def __init__(self) -> None:
        super().__init__()
        self._bars = Bars()
        self.rules = self._bars.rules()

    def finish(self) -> None:
        """What the bars tell."""
        self._bars.tell(self.log)


def _has_bar(head: str) -> float:
    """As little as suffices: most programs with a log of their own show bars too."""
    return 0.5 if _ANY_BAR.search(head) else 0.0


READERS = (
    ProgramReader(
        "tqdm",
        "progress bars (tqdm, Rich; Lightning's, Accelerate's and Levanter's console)",
        (),
        ProgressBarParser,
        _has_bar,
    ),
)
