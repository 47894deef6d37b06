"""Position of one rank in a log of steps: steps and time since the previous line."""

from dataclasses import dataclass

from paceline.importers.logs.parsing.agreement import agree
from paceline.importers.logs.parsing.printed_numbers import COARSEST_DIGIT, duration, last_digit

CLEAR = 0.04
"""Largest relative rounding error of a difference of two means; else more lines are joined."""


@dataclass(frozen=True, slots=True)
class MeanLine:
    """Means as printed; ``now`` is the time of the last step alone."""

    mean: str
    now: str = ""
    data: str = ""


@dataclass(frozen=True, slots=True)
class TimedSteps:
    """Mean seconds per step, and of its input wait, over ``steps`` steps."""

    seconds: float
    steps: int
    data: float | None = None


@dataclass
class StepCursor:
    """Step number, epoch and clocks of the previous line, and totals up to it."""

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
        """Steps for ``seen`` samples of the epoch; its first line covers one step."""
        if seen and (not self.batch or epoch != self.epoch):
            self.batch = seen
        return round(seen / self.batch) if seen and self.batch else None

    def advanced(self, number: int, epoch: int | None, from_beginning: bool) -> tuple[int, int]:
        """Steps up to this line, and steps since the previous line.

        A log that starts late is assumed to miss all steps before its first line, unless that line
        averages over all steps (``from_beginning``).
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

    def since_before(self, line: MeanLine) -> TimedSteps | None:
        """Time since the previous line, from running means since the start of the epoch.

        Where each step has a line, its own time is taken. None where the means do not yet differ
        If each step has a line, its own time is used. None if the difference of the means is within
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
        return TimedSteps(spent / done, done, input_seconds) if spent > 0 else None

    def since_clock(self, clock: float | None, done: int) -> float | None:
        """Seconds per step since the previous line; None if the clock was set back."""
        before, self.clock = self.clock, clock
        if clock is None or before is None or clock <= before:
            return None
        return (clock - before) / done
