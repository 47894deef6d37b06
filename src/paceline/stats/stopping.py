"""Stopping rule: add launches until the interval is narrow at one of a few looks, or to a cap."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from paceline.errors import InputError
from paceline.stats.estimate import estimate
from paceline.stats.step_statistics import autocorrelation

LOOKS = (8, 12, 20, 30, 45, 70, 100)
"""Numbers of launches at which the interval is checked. Checks after every launch, or at three,
would stop too often at an interval that is narrow by chance; with these and the widened interval
the coverage stays near 95 % (tests/stats/test_simulations.py). Fewer than 8 launches show neither a
second mode nor a drift."""

FEWEST = 5
"""Smallest maximum of launches."""

SERIAL = 1.645
"""One-sided 5 % limit of the lag-1 autocorrelation of independent values, over 1 / sqrt(n)."""


@dataclass(frozen=True)
class StoppingRule:
    """Stop a configuration when the half width of its interval is below a fraction of the mean.

    ``most`` is the maximum number of launches.
    """

    relative_half_width: float
    most: int = 30

    def __post_init__(self) -> None:
        if self.most < FEWEST:
            raise InputError(
                f"too few launches for a stopping rule: {self.most} (minimum {FEWEST})",
                f"allow {LOOKS[0]} launches or more: the interval is first checked then",
            )

    @property
    def looks(self) -> tuple[int, ...]:
        """Numbers of launches at which the interval is checked; the last one is the cap."""
        return (*(look for look in LOOKS if look < self.most), self.most)

    def is_met(self, seconds: Sequence[float]) -> bool:
        """Whether the interval of these launches, one value each in order, is narrow enough.

        Not if consecutive launches are correlated, as in a drift: more launches at the same time
        then narrow the interval, but do not show the mean.
        """
        if len(seconds) < 2 or are_correlated(seconds):
            return False
        found = estimate(seconds, sequential=True)
        return found.relative_half_width < self.relative_half_width

    def wanted(self, seconds: Sequence[float], failed: int = 0) -> int:
        """Number of launches at the next look; the present number if the rule is met.

        ``failed`` launches count towards the looks and the cap, not towards the interval.
        """
        made = len(seconds) + failed
        if made in self.looks and self.is_met(seconds):
            return made
        return next((look for look in self.looks if look > made), made)


def are_correlated(seconds: Sequence[float]) -> bool:
    """Whether consecutive launches are significantly correlated; False with fewer than eight."""
    if len(seconds) < LOOKS[0]:
        return False
    # The estimate is biased by -1 / n for independent values
    found = autocorrelation(seconds, 1) + 1.0 / len(seconds)
    return found > SERIAL / math.sqrt(len(seconds))
