"""Measures a remedy: the command of a launch repeated with and without it, alternately."""

import math
import shlex
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from paceline.analysis.launch_statistics import mean_step_seconds
from paceline.errors import InputError
from paceline.explanation.explain_step import Explanation
from paceline.measurement.recording.redaction import REDACTED, redacted
from paceline.stats.estimate import student_t
from paceline.store import Launch, Status
from paceline.units import format_seconds, plural


@dataclass(frozen=True)
class TriedRemedy:
    """A remedy with its predicted saving (None if no finding has it) and measured ones, seconds.

    ``saved`` has a difference for each pair of launches without and with the remedy. ``command``
    is the repeated command as it was recorded, without secrets.
    """

    remedy: str
    step_seconds: float
    predicted_seconds: float | None
    saved: tuple[float, ...]
    command: tuple[str, ...] = ()

    @property
    def measured_seconds(self) -> float:
        return statistics.fmean(self.saved)

    @property
    def half_width(self) -> float:
        """Half the 95 % interval over pairs; NaN for one."""
        if len(self.saved) < 2:
            return math.nan
        error = statistics.stdev(self.saved) / math.sqrt(len(self.saved))
        return student_t(len(self.saved) - 1) * error

    def describe(self) -> str:
        """``Tried threads=1: saves 70.1 ms [61 ms, 79 ms] of 173 ms (predicted 74 ms)``."""
        low, high = (self.measured_seconds + sign * self.half_width for sign in (-1.0, 1.0))
        interval = ""
        if math.isfinite(low):
            interval = f" [{format_seconds(low)}, {format_seconds(high)}]"
        predicted = "not predicted"
        if self.predicted_seconds is not None:
            predicted = f"predicted {format_seconds(self.predicted_seconds)}"
        return (
            f"Tried {self.remedy}: saves {format_seconds(self.measured_seconds)}{interval} of "
            f"{format_seconds(self.step_seconds)} ({predicted}; "
            f"{plural(len(self.saved), 'pair')} of launches of '{shlex.join(self.command)}')"
        )


def try_remedy(
    explanation: Explanation, remedy: str, pairs: int, store: Path | str | None
) -> TriedRemedy:
    """Repeat the observed command ``pairs`` times without and with ``remedy`` (NAME=VALUE)."""
    from paceline.measurement.api import run

    launch = explanation.observed.first
    command: Sequence[str] = launch.job.get("command") or ()
    if not command:
        raise InputError(
            "--try repeats a command, and this study has none",
            "record the job with 'paceline run' first",
        )

    if any(REDACTED in word for word in command):
        raise InputError(
            f"--try cannot repeat a command whose secrets were not recorded: {shlex.join(command)}",
            "record the job with 'paceline run --keep-secrets'",
        )

    def step(trials: Sequence[str]) -> float:
        done = run(
            command,
            trials=trials,
            study=launch.study,
            store=store,
            model=launch.model,
            batch=launch.job.get("batch_told"),
        )
        return _step_of(done.launches[-1], remedy)

    found: list[tuple[float, float]] = []
    for number in range(pairs):
        if number % 2:
            tried = step([remedy])
            found.append((step([]), tried))
        else:
            found.append((step([]), step([remedy])))
    predicted = [one.saved_seconds for one in explanation.findings if one.trial == remedy]
    return TriedRemedy(
        remedy,
        statistics.fmean(plain for plain, _ in found),
        predicted[0] if predicted else None,
        tuple(plain - tried for plain, tried in found),
        tuple(redacted(command)),
    )


def _step_of(launch: Launch, remedy: str) -> float:
    if launch.status is not Status.FINISHED:
        raise InputError(
            f"the command failed (--try {remedy}): {launch.outcome.reason}",
            f"see 'paceline study show {launch.id}'",
        )
    return mean_step_seconds(launch)
