"""Where one rank is in a log of steps: what came since the line before."""

from dataclasses import dataclass

from paceline.measurement.readers.agreement import agree
from paceline.measurement.readers.numbers import duration, last_digit

CLEAR = 0.04
"""Part of a difference of two means that their last digits may be; less clear ones are joined."""

COARSEST_DIGIT = 1e-3
"""Programs print means with three digits or more; fewer are zeros left out."""


@dataclass(frozen=True, slots=True)
class MeanLine:
    """Means as a line prints them, as text; ``now`` is the last step alone."""

    mean: str
    now: str = ""
    data: str = ""


@dataclass(frozen=True, slots=True)
class Stretch:
    """Seconds of a step and of its waiting for input, over ``steps`` steps."""

    seconds: float
    steps: int
    data: float | None = None


@dataclass
class Place:
    """Number, epoch and clocks of the line before, and what was summed up to it."""

    first: int
    number: int = 0
    epoch: int | None = None
    index: int = 0
    consumed: float | None = None
    clock: float | None = None
    batch: int = 0
    timed: bool = False
    runs_on: bool = False
    begun_at: int = 0
    _total: float = 0.0
    _data: float = 0.0
    _steps: int = 0

    def __post_init__(self) -> None:
        self.number = self.first - 1

    def steps_of(self, seen: int | None, epoch: int | None) -> int | None:
        """Steps that so many samples of the epoch are, by what its first line has seen."""
        if seen and (not self.batch or epoch != self.epoch):
            self.batch = seen
        return round(seen / self.batch) if seen and self.batch else None

    def advanced(self, number: int, epoch: int | None, from_beginning: bool) -> tuple[int, int]:
        """Steps up to this line and steps since the line before it.

        A log that begins late begins with the step before, unless its line tells of all steps.
        """
        if number == 0:
            self.first = 0
        if epoch != self.epoch or number < self.number:
            started_later = self.epoch is None and epoch is None and self.index == 0
            if self.index or not started_later:
                self.number, self._total, self._data, self._steps = self.first - 1, 0.0, 0.0, 0
            self.epoch = epoch
        if self.index == 0:
            late = number > 10 * self.first + 1000 and not from_beginning
            self.number = number - 1 if late else max(self.first - 1, self.begun_at - 1)
        done = number - self.number
        self.number, self.index = number, self.index + max(0, done)
        return self.index, done

    def since_before(self, line: MeanLine) -> Stretch | None:
        """The steps since the line before, from means since the beginning of the epoch.

        Where each step has a line, its own time is taken. None where the means do not yet differ
        clearly: the next line is then compared with the same one as this.
        """
        mean, now, data = duration(line.mean), duration(line.now), duration(line.data) or 0.0
        steps = self.number - max(self.first, self.begun_at) + 1
        done = steps - self._steps
        if mean is None or done < 1:
            return None
        total, waited = mean * steps, data * steps
        spent = total - self._total
        if now is not None and done == 1:
            begins = steps == 1 and (self.epoch or 0) > 1
            self.runs_on = self.runs_on or (begins and not agree(now, mean))
            spent = now if self._steps else mean
        elif self._steps and spent * CLEAR < steps * min(last_digit(line.mean), COARSEST_DIGIT):
            return None
        input_seconds = (waited - self._data) / done if line.data else None
        self._total, self._data, self._steps = total, waited, steps
        return Stretch(spent / done, done, input_seconds) if spent > 0 else None

    def since_clock(self, clock: float | None, done: int) -> float | None:
        """Seconds of a step since the line before, by a clock that may be set back."""
        before, self.clock = self.clock, clock
        if clock is None or before is None or clock <= before:
            return None
        return (clock - before) / done
