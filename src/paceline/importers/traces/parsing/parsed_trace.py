"""Result of reading a trace: measured steps, warnings, unread events."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from paceline.step import Step

STARTUP_LABEL = "start-up"
"""Label of the part before the first training step."""


@dataclass(frozen=True)
class ParsedTrace:
    """Steps in order, each with the ranks of the files that were read.

    ``ranks`` is the number of ranks of the job, if the trace states it. ``unread`` counts damaged
    and foreign events or lines. ``coordinates`` are those of ranks (``stage``, ``dp_rank``).
    With ``common_clock`` times of different ranks are comparable; otherwise each rank's step
    starts at zero.
    """

    program: str
    steps: tuple[Step, ...]
    ranks: int | None = None
    unread: int = 0
    warnings: tuple[str, ...] = ()
    facts: Mapping[str, str | float] = field(default_factory=dict)
    coordinates: Mapping[int, Mapping[str, str]] = field(default_factory=dict)
    common_clock: bool = False

    @property
    def training_steps(self) -> tuple[Step, ...]:
        """Steps without the start-up (initial broadcasts)."""
        return tuple(step for step in self.steps if step.label != STARTUP_LABEL)

    @property
    def typical_step(self) -> Step | None:
        """The step of median length; the first one (warm-up) is excluded if there are others."""
        own = self.training_steps or self.steps
        steps = sorted(own[1:] or own, key=lambda step: step.seconds)
        return steps[len(steps) // 2] if steps else None
