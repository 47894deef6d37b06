"""A/A test: the false-positive rate of comparisons of one job with itself on this machine."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from paceline.analysis.launch_statistics import mean_step_seconds
from paceline.analysis.regression import TimeChange, false_positive_rate, time_changes
from paceline.analysis.regression_tables import changes_json, changes_table
from paceline.errors import InputError
from paceline.render.result import PublicResult
from paceline.render.table import Table
from paceline.stats.distributions import SIGNIFICANCE
from paceline.stats.estimate import pooled_variation
from paceline.stats.power import detectable_change
from paceline.store import Launch, Status
from paceline.units import plural

WINDOW = 3


@dataclass(frozen=True, repr=False)
class NoiseTest(PublicResult):
    """Comparison of two interleaved halves of one job, and of neighbours in time.

    ``in_time`` is the fraction of false positives in ``windows`` pairs of neighbouring groups of
    ``window`` launches; NaN with too few launches.
    """

    schema: ClassVar[str] = "noise/1"
    study: str
    halves: TimeChange
    in_time: float
    window: int
    windows: int

    @property
    def is_false_positive(self) -> bool:
        """Whether the halves differ significantly."""
        return self.halves.p_value < SIGNIFICANCE

    def summary(self) -> str:
        """The result of the A/A test."""
        verdict = "a false positive" if self.is_false_positive else "no false positive"
        p = f"p = {self.halves.p_value:.3f}"
        return f"A/A test: {verdict} ({p}, significance level {SIGNIFICANCE:g})."

    def parts(self) -> list[str | Table]:
        """The comparison, drift in time, and the detectable change."""
        parts: list[str | Table] = [changes_table([self.halves]), self.summary()]
        if not math.isnan(self.in_time):
            parts.append(
                f"Consecutive groups of {plural(self.window, 'launch')}: significantly different "
                f"in {100 * self.in_time:.0f} % of {plural(self.windows, 'case')}. Well above 5 % "
                "the machine drifts: compare interleaved launches only."
            )
        if not math.isnan(self.halves.detectable):
            count = plural(len(self.halves.base.launches), "launch")
            parts.append(
                f"Detectable change with {count} per group, interleaved: "
                f"{100 * self.halves.detectable:.3g} % (power 0.8). It is larger between campaigns "
                "(days, boots, allocations)."
            )
        return parts

    def to_dict(self) -> dict[str, Any]:
        """The comparison and the rate of false positives in time."""
        return {
            "study": self.study,
            "false_positive": self.is_false_positive,
            "halves": changes_json([self.halves])[0],
            "false_positive_rate_in_time": self.in_time,
            "window_launches": self.window,
            "windows": self.windows,
        }


def noise_of(study: str, launches: Sequence[Launch]) -> NoiseTest:
    """Compare launches at even positions with those at odd positions: all have the same job."""
    finished = [one for one in launches if one.status is Status.FINISHED and one.is_steady]
    if len(finished) < 2:
        raise InputError("fewer than two launches finished", "see why with 'paceline study show'")
    (halves,) = time_changes(finished[::2], finished[1::2])
    seconds = [mean_step_seconds(one) for one in finished]
    # The halves are interleaved: their difference contains no variance between campaigns.
    spread = pooled_variation((seconds[::2], seconds[1::2]))
    detectable = detectable_change((len(seconds[::2]), len(seconds[1::2])), spread)
    halves = replace(halves, detectable=detectable)
    windows = max(0, len(seconds) - 2 * WINDOW + 1)
    return NoiseTest(study, halves, false_positive_rate(seconds, WINDOW), WINDOW, windows)
