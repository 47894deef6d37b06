"""A/A test: the false-positive rate of comparisons of one job with itself on this machine."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from paceline.analysis.launch_statistics import mean_step_seconds
from paceline.analysis.regression import TimeChange, false_positive_rate, time_changes
from paceline.analysis.regression_tables import changes_json
from paceline.errors import InputError
from paceline.stats.distributions import SIGNIFICANCE
from paceline.stats.pairs import smallest_detectable
from paceline.store import Launch, Status

WINDOW = 3


@dataclass(frozen=True)
class SelfCheck:
    """Comparison of two interleaved halves of one job, and of neighbours in time.

    ``in_time`` is the fraction of false positives in ``windows`` pairs of neighbouring groups of
    ``window`` launches; NaN with too few launches.
    """

    blind: TimeChange
    in_time: float
    window: int
    windows: int

    @property
    def cried_wolf(self) -> bool:
        """Whether the comparison of the halves is a false positive."""
        return self.blind.p_value < SIGNIFICANCE

    def to_json(self) -> dict[str, Any]:
        """Convert the result to JSON values."""
        return {
            "cried_wolf": self.cried_wolf,
            "blind": changes_json([self.blind])[0],
            "false_alarms_in_time": self.in_time,
            "window_launches": self.window,
            "windows": self.windows,
        }


def self_check(launches: Sequence[Launch]) -> SelfCheck:
    """Compare launches at even positions with those at odd positions: all have the same job."""
    finished = [one for one in launches if one.status is Status.FINISHED and one.is_steady]
    if len(finished) < 2:
        raise InputError("fewer than two launches finished", "see why with 'paceline list'")
    (blind,) = time_changes(finished[::2], finished[1::2])
    seconds = [mean_step_seconds(one) for one in finished]
    logs = [[math.log(one) for one in half] for half in (seconds[::2], seconds[1::2])]
    variances = [statistics.variance(half) for half in logs if len(half) > 1]
    spread = math.sqrt(statistics.fmean(variances)) if variances else math.nan
    # The halves are interleaved: their difference contains no variance between sessions.
    blind = replace(blind, detectable=smallest_detectable(len(logs[0]), len(logs[1]), spread))
    windows = max(0, len(seconds) - 2 * WINDOW + 1)
    return SelfCheck(blind, false_positive_rate(seconds, WINDOW), WINDOW, windows)
