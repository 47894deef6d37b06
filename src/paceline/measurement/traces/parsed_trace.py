"""What a trace file tells: measured steps, and what could not be read."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from paceline.step import Step

STARTUP_LABEL = "start-up"
"""Label of what happens before the first training step."""


@dataclass(frozen=True)
class ParsedTrace:
    """Steps in order, each with the ranks that the files cover.

    ``ranks`` is how many took part in the job, where the trace says it. ``unread`` counts
    events or lines that are damaged or not the program's. ``places`` says where ranks stand
    (``stage``, ``dp_rank``), where the trace does. With ``common_clock`` moments of different
    ranks can be compared; else each rank's step begins at zero.
    """

    program: str
    steps: tuple[Step, ...]
    ranks: int | None = None
    unread: int = 0
    warnings: tuple[str, ...] = ()
    facts: Mapping[str, str | float] = field(default_factory=dict)
    places: Mapping[int, Mapping[str, str]] = field(default_factory=dict)
    common_clock: bool = False

    @property
    def training_steps(self) -> tuple[Step, ...]:
        """Steps without the start-up (first broadcasts), where the trace tells it apart."""
        return tuple(step for step in self.steps if step.label != STARTUP_LABEL)

    @property
    def typical_step(self) -> Step | None:
        """The step of median length, the first left out when there are others (it warms up)."""
        own = self.training_steps or self.steps
        steps = sorted(own[1:] or own, key=lambda step: step.seconds)
        return steps[len(steps) // 2] if steps else None
