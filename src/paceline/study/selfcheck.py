"""One job against itself: what this machine calls different though it is the same."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from paceline.analyse.regression import TimeChange, false_alarms, time_changes
from paceline.analyse.statistics import mean_step_seconds
from paceline.errors import InputError
from paceline.report.tables.changes import changes_json
from paceline.statistics.distributions import SIGNIFICANCE
from paceline.store import Launch, Status

WINDOW = 3


@dataclass(frozen=True)
class SelfCheck:
    """Two blind halves of one job, and neighbours in time.

    ``in_time`` is the part of ``windows`` pairs of neighbouring ``window`` launches that are
    called different, NaN with too few launches.
    """

    blind: TimeChange
    in_time: float
    window: int
    windows: int

    @property
    def cried_wolf(self) -> bool:
        """Whether the halves were called different."""
        return self.blind.p_value < SIGNIFICANCE

    def to_json(self) -> dict[str, Any]:
        """The same as JSON values."""
        return {
            "cried_wolf": self.cried_wolf,
            "blind": changes_json([self.blind])[0],
            "false_alarms_in_time": self.in_time,
            "window_launches": self.window,
            "windows": self.windows,
        }


def self_check(launches: Sequence[Launch]) -> SelfCheck:
    """Compare every other launch with those between: all asked for the same, none is special."""
    finished = [one for one in launches if one.status is Status.FINISHED and one.is_steady]
    if len(finished) < 2:
        raise InputError("fewer than two launches finished", "'paceline list' says why")
    (blind,) = time_changes(finished[::2], finished[1::2])
    seconds = [mean_step_seconds(one) for one in finished]
    windows = max(0, len(seconds) - 2 * WINDOW + 1)
    return SelfCheck(blind, false_alarms(seconds, WINDOW), WINDOW, windows)
