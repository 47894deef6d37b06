"""Clocks of a log (time stamps of lines, seconds since the start), compared with its step times.

Steps that add up to more than the elapsed time make a log inconsistent.
"""

import re
from dataclasses import dataclass
from datetime import datetime

from paceline.importers.logs.parsing.agreement import AGREES_WITHIN

SLACK_SECONDS = 2.0
"""Time stamps are whole seconds, and lines are written with a delay."""
IMPOSSIBLE = 2.0
"""Ratio of step times to time stamps that no delay of output explains."""
PAUSE = 5.0
"""Time between lines over step times above which an evaluation or a checkpoint intervened."""
OUTSIDE = 1.2
"""Ratio of elapsed time to step times above which a warning is issued."""

_STAMP = re.compile(r"\b(20\d\d)[-/](\d\d)[-/](\d\d)[ T,_](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,6}))?")


def stamp(text: str) -> float | None:
    """The first time stamp (date and time) of a line in seconds; None if there is none."""
    match = _STAMP.search(text[:200])
    if match is None:
        return None
    *parts, fraction = match.groups()
    try:
        whole = datetime(*(int(part) for part in parts)).timestamp()  # type: ignore[arg-type]
    except (ValueError, OverflowError, OSError):
        return None
    return whole + float(f"0.{fraction}" if fraction else 0)


@dataclass
class LineClock:
    """Sum of printed step times and of elapsed time."""

    before: float | None = None
    printed: float = 0.0
    elapsed: float = 0.0
    usual_printed: float = 0.0
    usual_elapsed: float = 0.0

    def add(self, now: float | None, step_seconds: float | None, steps: int) -> None:
        """Add a line at ``now`` that covers ``steps`` steps; None restarts the comparison."""
        before, self.before = self.before, now
        if now is None or before is None or step_seconds is None or now < before:
            return
        printed = step_seconds * steps
        self.printed, self.elapsed = self.printed + printed, self.elapsed + now - before
        if now - before < PAUSE * printed:
            self.usual_printed += printed
            self.usual_elapsed += now - before

    def too_short(self, by: float = 1 + AGREES_WITHIN) -> str | None:
        """A message if the steps add up to more than ``by`` times the elapsed time."""
        if not self.elapsed or self.printed <= by * self.elapsed + SLACK_SECONDS:
            return None
        return (
            f"printed step times add up to {self.printed:,.4g} s, but only {self.elapsed:,.4g} s "
            "elapsed between the lines"
        )

    @property
    def too_long(self) -> str | None:
        """A message if the steps cover only part of the time between lines."""
        if self.usual_elapsed <= OUTSIDE * self.usual_printed + SLACK_SECONDS:
            return None
        return (
            f"time between lines is {self.usual_elapsed / self.usual_printed:.2f} times the "
            "printed step times: they do not cover the whole step"
        )
