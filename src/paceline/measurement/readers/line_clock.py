"""The clock that logs carry beside their steps: time stamps of lines, and seconds since the start.

Steps cannot take longer than the clock says went by; where they do, the log contradicts itself.
"""

import re
from dataclasses import dataclass
from datetime import datetime

from paceline.measurement.readers.agreement import AGREES_WITHIN

SLACK_SECONDS = 2.0
"""Stamps and clocks are whole seconds, and lines are written a little late."""
IMPOSSIBLE = 2.0
"""Steps over time stamps from which on both cannot be right, however late lines are stamped."""
PAUSE = 5.0
"""A time between lines of so many times its steps holds an evaluation or a checkpoint."""
OUTSIDE = 1.2
"""Clock over steps from which on the rest of the time is worth a word."""

_STAMP = re.compile(r"\b(20\d\d)[-/](\d\d)[-/](\d\d)[ T,_](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,6}))?")


def stamp(text: str) -> float | None:
    """Seconds of the first time stamp of a line, with its date; None without one."""
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
    """Seconds that steps are said to take beside those that a clock says went by."""

    before: float | None = None
    said: float = 0.0
    passed: float = 0.0
    usual_said: float = 0.0
    usual_passed: float = 0.0

    def add(self, now: float | None, step_seconds: float | None, steps: int) -> None:
        """A line at ``now`` about ``steps`` steps since the line before; None breaks the chain."""
        before, self.before = self.before, now
        if now is None or before is None or step_seconds is None or now < before:
            return
        said = step_seconds * steps
        self.said, self.passed = self.said + said, self.passed + now - before
        if now - before < PAUSE * said:
            self.usual_said += said
            self.usual_passed += now - before

    def too_short(self, by: float = 1 + AGREES_WITHIN) -> str | None:
        """A sentence if the steps take more than ``by`` times as long as the clock says."""
        if not self.passed or self.said <= by * self.passed + SLACK_SECONDS:
            return None
        return (
            f"the steps are said to take {self.said:,.4g} s, but by the clock of their lines "
            f"{self.passed:,.4g} s went by"
        )

    @property
    def too_long(self) -> str | None:
        """A sentence if much of the time between lines is not in their steps."""
        if self.usual_passed <= OUTSIDE * self.usual_said + SLACK_SECONDS:
            return None
        return (
            f"the clock of the lines gives {self.usual_passed / self.usual_said:.2f} times the "
            "printed step times: part of each step is not in them"
        )
