"""What failures, checkpoints and restarts leave of a long job: Young's and Daly's equations."""

import math
from dataclasses import dataclass

from paceline.errors import InputError

_LARGEST_EXPONENT = 500.0


@dataclass(frozen=True)
class Interruptions:
    """How often a job stops, and what it costs; all in seconds.

    ``between_failures`` is the mean time between failures of the whole job,
    ``checkpoint`` what writing one keeps the devices from training, ``restart`` what passes
    from a failure until training goes on at the last checkpoint.
    """

    between_failures: float
    checkpoint: float
    restart: float

    def __post_init__(self) -> None:
        for name in ("between_failures", "checkpoint", "restart"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value >= 0) or (name != "restart" and value == 0):
                words = name.replace("_", " ")
                raise InputError(f"a time of {value:g} s for {words}", "give a time above zero")

    @property
    def best_interval(self) -> float:
        """Training between two checkpoints that loses least (Daly 2006, after Young 1974)."""
        ratio = self.checkpoint / (2.0 * self.between_failures)
        if ratio >= 1.0:
            return self.between_failures
        root = math.sqrt(2.0 * self.checkpoint * self.between_failures)
        return root * (1.0 + math.sqrt(ratio) / 3.0 + ratio / 9.0) - self.checkpoint

    def goodput(self, interval: float | None = None) -> float:
        """Share of the time that trains, with a checkpoint after each ``interval`` [the best].

        Failures come at random at any time, also while a checkpoint is written or read
        (Daly 2006).
        """
        between = self.between_failures
        trained = self.best_interval if interval is None else interval
        lost = self.restart / between
        piece = (trained + self.checkpoint) / between
        if max(lost, piece) > _LARGEST_EXPONENT:
            return 0.0
        return trained / (between * math.exp(lost) * math.expm1(piece))
