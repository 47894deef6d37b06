"""Steps and times from progress bars of any program."""

import re
from collections.abc import Iterable

from paceline.importers.logs.parsing.agreement import agree
from paceline.importers.logs.parsing.log_builder import LogBuilder
from paceline.importers.logs.parsing.log_lines import LogLine
from paceline.importers.logs.parsing.log_reader import LineRule
from paceline.importers.logs.parsing.printed_numbers import NUMBER, half_unit, positive

CLEAR_SECONDS = 20.0
"""Progress bars show whole seconds: shorter times are too inaccurate."""
PAUSE = 5.0
"""An update later than this multiple of the usual interval follows an evaluation or the like."""
REDRAWN = 0.05
"""Share of its time by which the last state of a bar may be later than the last step."""
MOST_BARS = 10_000

_CLOCK = r"(?:(?P<hours>\d{1,6}):)?(?P<minutes>\d{1,6}):(?P<seconds>\d\d)"
_COUNT = r"\d+(?:\.\d+)?[kMG]?"
_UNIT = r"(?:it|batch|batches|ba|steps?|iters?)"
_RATE = rf"(?P<rate>{NUMBER})\s?(?P<unit>{_UNIT}/s|s/{_UNIT})\b"
_TQDM = re.compile(
    rf"^(?P<name>.{{0,160}}?)\s*\d{{1,3}}%(?:\|[^|]*\|)? *(?P<done>\d+)/(?P<total>\d+) "
    rf"\[{_CLOCK}<[^,\]]*,\s*{_RATE}"
)
_RICH = re.compile(
    rf"^(?P<name>[^━╸╺|]{{0,80}}?)\s*[━╸╺ ]*[━╸╺][━╸╺ ]*(?P<done>\d+)/(?P<total>\d+) "
    rf"{_CLOCK} • (?:[\d:]+|-:--:--) {_RATE}"
)
_ULTRALYTICS = re.compile(
    rf"^(?P<name>.{{0,160}}?):? +\d{{1,3}}% [━─╸]{{4,}} (?P<done>\d+)/(?P<total>\d+) {_RATE} "
    r"(?:(?:(?P<hours>\d{1,6}):)?(?P<minutes>\d{1,6}):)?(?P<seconds>\d{1,2})(?:\.\d)?s?(?:<|\s|$)"
)
_LOGGED = re.compile(
    rf"Progress on:(?P<name>\S{{0,80}}) (?P<done>{_COUNT})it/(?P<total>{_COUNT})it "
    rf"rate:{_RATE} remaining:\S+ elapsed:{_CLOCK}"
)
_ANY_BAR = re.compile(
    r"%(?:\|[^|\n]{0,200}\|)? *\d+/\d+ \[[\d:]+<[^\n]{0,40}"
    rf"(?:{_UNIT}/s|s/{_UNIT})\b"
    r"|[━╸╺] {0,80}\d+/\d+ [\d:]+ • [\d:-]+ [\d.]+(?:it/s|s/it)"
    r"|\d% [━─╸]{4,} \d+/\d+ [\d.]+(?:it/s|s/it) "
    r"|Progress on:train \S+it/\S+it rate:[\d.]+(?:it/s|s/it)"
)
_NOT_TRAINING = re.compile(
    r"valid|\bval\b|val_|_val|\bdev\b|eval|test|sanity|predict|infer|download|map|token|generat|fetch"
    r"|\bmap\d*\b|instances|filter|resolv|shard|files?\b|epochs|epoch\W*$"
    r"|\b(?!(?:pre|re)?train|fitting|(?:fine)?tuning|learning|optimi[sz]ing)[a-z]+ing\b",
    re.I,
)
"""Names of other bars: evaluation, data, downloads, epochs; any verb except training."""
_TRAINING = re.compile(r"train|epoch\W*\d|\bsteps?\b|\biter|\bbatch|\bfit|tuning", re.I)
_COLUMNS = re.compile(r"^\s*\d+/\d+(?:\s+[\d.]+[GM]?)(?:\s+(?:[\d.]+|nan)){3,}:?$")
"""Epoch, memory and losses in front of a bar (YOLOv5 and later, Ultralytics)."""
_LOSS = re.compile(r"loss|\bppl\b|\blr\b|v_num", re.I)
"""Metrics that training bars show after the rate."""
_METRIC = re.compile(r"[a-z]\w*\s*[:=]\s*-?\d+\.\d+", re.I)
_SCORE = re.compile(r"acc|iou|dice|psnr|ssim|bleu|\bwer|\bf1|score|\bmae|recall|precision", re.I)
"""Metrics that evaluation bars show in front of the rate."""
CHANGING = 4
"""Different names of a bar by which the metrics in its name are those of steps (``gen: 0.12``)."""
_TRAINER_ROW = re.compile(r"^\s*\{'loss': .*'learning_rate': ")


class Bars:
    """All progress bars of a log. Bars with the same name and length are epochs of one loop.

    A bar counts as training if its name or its metrics (a loss) indicate it. With ``any_name`` the
    only bar that is not known to be something else counts as training.
    """

    def __init__(self, any_name: bool = False) -> None:
        self._any_name = any_name
        self._has_trainer_rows = False
        self._bars: list[_Bar] = []
        self._shown: dict[tuple[str, int], _Bar] = {}

    def rules(self) -> tuple[LineRule, ...]:
        """Rules for tqdm bars, Rich bars (Lightning), and tqdm bars logged as lines."""
        return (
            LineRule("%", _TQDM, self._state),
            LineRule("•", _RICH, self._state),
            LineRule("━", _ULTRALYTICS, self._state),
            LineRule("Progress on:", _LOGGED, self._state),
            LineRule("{'loss'", _TRAINER_ROW, self._row),
        )

    def _row(self, match: re.Match[str], line: LogLine) -> None:
        self._has_trainer_rows = True

    def _state(self, match: re.Match[str], line: LogLine) -> None:
        name = match["name"].strip(" :")
        done, total, rate = _steps(match["done"]), _steps(match["total"]), positive(match["rate"])
        if _NOT_TRAINING.search(name) or not done or not total or rate is None:
            return
        seconds = 3600.0 * int(match["hours"] or 0) + 60.0 * int(match["minutes"] or 0)
        seconds += int(match["seconds"])
        per_second = rate if match["unit"].endswith("/s") else 1 / rate
        kind = kind_of(name, total)  # a name may have the loss or the step in it
        bar = self._shown.get(kind)
        if bar is None or done < bar.done or (done == total == bar.done and bar.is_other(name)):
            if len(self._bars) >= MOST_BARS:
                return
            bar = self._shown[kind] = _Bar(name, total)
            self._bars.append(bar)
        bar.names |= {name} if len(bar.names) < CHANGING else set()
        bar.trains = bar.trains or bool(
            (len(bar.names) == CHANGING and _METRIC.search(name) and not _SCORE.search(name))
            or _TRAINING.search(name)
            or _COLUMNS.search(name)
            or _LOSS.search(name)
            or _LOSS.search(line.text, match.end())
        )
        # The printed digits, as steps/s: 2.00s/it is 0.5 steps/s, and its half unit 0.25 % of that.
        bar.update(done, seconds, per_second, half_unit(match["rate"]) / rate * per_second)

    def add_to(self, log: LogBuilder, total: int | None = None) -> None:
        """Add the steps of the longest training bars, or of the bars of length ``total``."""
        if total is not None:
            bars = [bar for bar in self._bars if bar.total == total]
        else:
            bars = [bar for bar in self._bars if bar.trains] or self._only_kind(log)
        steps = _steps_by_kind(bars)
        if not steps:
            return
        main = max(steps, key=lambda kind: steps[kind])
        index = 0
        for bar in (bar for bar in bars if bar.kind == main):
            index += bar.done
            log.step(index, bar.step_seconds, bar.done)
            if bar.has_pause:
                log.warn("dropped pauses of progress bars (evaluation, checkpoint)")
            if bar.seconds < CLEAR_SECONDS:
                log.warn("progress bars shorter than 20 s: using their printed rate")
            elif bar.is_complete:
                bar.check(log)
            log.finished = bar.is_complete
        log.drop_pauses()

    def _only_kind(self, log: LogBuilder) -> "list[_Bar]":
        """Unnamed bars that other evidence identifies as training.

        Hugging Face's Trainer names neither training nor evaluation bars: the first bar, which also
        has the most steps, is training. Without evidence a warning asks the user.
        """
        steps = _steps_by_kind(self._bars)
        first = next(iter(steps), None)
        if first is None:
            return []
        is_main = not first[0] and first == max(steps, key=lambda kind: steps[kind])
        if (self._has_trainer_rows and is_main) or (self._any_name and len(steps) == 1):
            return [bar for bar in self._bars if bar.kind == first]
        shown = ", ".join(f"'{name}' ({total:,} steps)" for name, total in list(steps)[:3])
        log.warn(
            f"no progress bar could be identified as training: {shown}. If the log has one bar and "
            "it counts training steps, set --program training-bar"
        )
        return []


def _steps_by_kind(bars: "Iterable[_Bar]") -> dict[tuple[str, int], int]:
    """Steps of all bars by kind, in order of appearance."""
    steps: dict[tuple[str, int], int] = {}
    for bar in bars:
        steps[bar.kind] = steps.get(bar.kind, 0) + bar.done
    return steps


class _Bar:
    """One bar: its latest step and time.

    ``begun`` is step and time of its first update, which excludes compilation.
    """

    def __init__(self, name: str, total: int) -> None:
        self.name, self.total = name, total
        self.done, self.seconds, self.rate, self.rate_rounding = 0, 0.0, 0.0, 0.0
        self.trains = False
        self.names: set[str] = set()
        self.begun: tuple[int, float] = (0, 0.0)
        self._quick, self._slow = (0, 0.0), (0, 0.0)
        self._closing = (0.0, 0.0, 0.0)

    def update(self, done: int, seconds: float, rate: float, rate_rounding: float) -> None:
        self._closing = (seconds, rate, rate_rounding)
        if self.done == 0:
            self.begun = (done, seconds)
        elif done == self.done and seconds > self.seconds + max(1.0, REDRAWN * self.seconds):
            return  # drawn again after a validation (Lightning), whose time it includes
        else:
            steps, taken = done - self.done, seconds - self.seconds
            if taken < CLEAR_SECONDS:
                self._quick = (self._quick[0] + steps, self._quick[1] + taken)
            elif self.has_long(steps, taken):
                self._slow = (self._slow[0] + steps, self._slow[1] + taken)
        self.done, self.seconds = done, seconds
        self.rate, self.rate_rounding = rate, rate_rounding

    def has_long(self, steps: int, seconds: float) -> bool:
        """Whether an interval is much longer than the short ones before it."""
        usual_steps, usual = self._quick
        return usual > 0 < usual_steps and 0 < steps * PAUSE * usual < seconds * usual_steps

    @property
    def kind(self) -> tuple[str, int]:
        """Name without numbers, and length: epochs of one training are of the same kind."""
        return kind_of(self.name, self.total)

    def is_other(self, name: str) -> bool:
        """Whether ``name`` begins with another number: the next epoch, shown complete only."""
        return re.findall(r"\d+", name)[:1] != re.findall(r"\d+", self.name)[:1]

    @property
    def is_complete(self) -> bool:
        return self.done == self.total

    @property
    def has_pause(self) -> bool:
        return self._slow[0] > 0

    @property
    def step_seconds(self) -> float:
        """Seconds per step since the first update, else since the start."""
        if self.seconds < CLEAR_SECONDS:
            return 1 / self.rate
        steps = self.done - self.begun[0] - self._slow[0]
        seconds = self.seconds - self.begun[1] - self._slow[1]
        if steps > 0 and seconds >= CLEAR_SECONDS:
            return seconds / steps
        return self.seconds / self.done

    def check(self, log: LogBuilder) -> None:
        """Check the rate of a complete bar, which is the mean since its start."""
        seconds, rate, rounding = self._closing
        mean = self.done / seconds
        if not agree(rate, mean, rounding + mean * 0.5 / seconds):
            log.contradict(
                f"progress bar '{self.name or 'unnamed'}': {self.done:,} steps in "
                f"{seconds:,.0f} s give {mean:,.4g} steps/s, but it prints {rate:,.4g}"
            )


def kind_of(name: str, total: int) -> tuple[str, int]:
    """Name of a bar without numbers, and its length."""
    return re.sub(r"(?:-?[\d.]+(?:e[-+]?\d+)?|nan|\s)+", " ", name).strip(), total


def _steps(text: str) -> int | None:
    """A number of steps (also 1.25k); None if it is invalid."""
    steps = positive(text)
    if steps is None:
        return None
    return round(steps) if 1 <= steps < 1e12 else None


def has_bar(head: str) -> float:
    """Lowest sufficient confidence: programs with a log format of their own show bars too."""
    return 0.5 if _ANY_BAR.search(head) else 0.0
