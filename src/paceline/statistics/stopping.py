"""When to stop adding launches: a narrow interval at one of a few looks, or a cap."""

from collections.abc import Sequence
from dataclasses import dataclass

from paceline.errors import InputError
from paceline.statistics.estimate import estimate

LOOKS = (5, 8, 12, 20, 30, 45, 70, 100)
"""Numbers of launches at which the interval is looked at. To look after every launch, or at
three, would stop by luck too often; with these and the widened interval 95 % stay about 95 %."""


@dataclass(frozen=True)
class StoppingRule:
    """Stop a configuration when its interval's half width is below a part of the mean.

    ``most`` launches are made at the most.
    """

    relative_half_width: float
    most: int = 30

    def __post_init__(self) -> None:
        if not 0.0 < self.relative_half_width < 1.0:
            raise InputError(
                f"a half width of {self.relative_half_width:g} is impossible",
                'give a part of the mean, as half_width = "2 %"',
            )
        if self.most < LOOKS[0]:
            raise InputError(
                f"at most {self.most} launches are too few to stop by",
                f"the first look is at {LOOKS[0]} launches",
            )

    @property
    def looks(self) -> tuple[int, ...]:
        """Numbers of launches at which a configuration is looked at, the last one the cap."""
        return (*(look for look in LOOKS if look < self.most), self.most)

    def is_met(self, seconds: Sequence[float]) -> bool:
        """Whether these launches, one value each, are narrow enough."""
        return len(seconds) > 1 and (
            estimate(seconds, sequential=True).relative_half_width < self.relative_half_width
        )

    def wanted(self, seconds: Sequence[float], failed: int = 0) -> int:
        """How many launches to have before the next look; their present number when to stop.

        ``failed`` launches count towards the looks and the cap, not towards the interval.
        """
        made = len(seconds) + failed
        if made in self.looks and self.is_met(seconds):
            return made
        return next((look for look in self.looks if look > made), made)
