"""Task and Step: what every measurement and every prediction is turned into."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum


class Phase(StrEnum):
    """What a task does for training; the vocabulary of every breakdown."""

    INPUT = "input"
    COPY = "copy"
    FORWARD = "forward"
    BACKWARD = "backward"
    COMMUNICATE = "communicate"
    UPDATE = "update"
    WAIT = "wait"
    OTHER = "other"


class Origin(StrEnum):
    """Whether the times of a step were observed or computed."""

    MEASURED = "measured"
    PREDICTED = "predicted"


@dataclass(frozen=True, slots=True)
class Task:
    """One piece of work on one resource of one rank.

    ``seconds`` is its duration, ``after`` the indices of earlier tasks it waits for,
    ``resource`` the lane it occupies (``compute``, ``network``, ``input``, ...). Tasks of one
    lane run in the order in which they are listed. ``size_bytes`` and ``flops`` are what it
    moves and computes, for rates; ``layer`` names the layer or bucket it belongs to, ``group`` the
    ranks that exchange a message (``mesh_tp 0,1``) where they are not all.
    """

    name: str
    phase: Phase
    resource: str
    seconds: float
    after: tuple[int, ...] = ()
    rank: int = 0
    layer: str = ""
    size_bytes: float = 0.0
    flops: float = 0.0
    group: str = ""


@dataclass(frozen=True)
class Step:
    """Tasks with their start times (seconds from the beginning of the step).

    A measured step carries the starts that were observed, a predicted one those the
    scheduler placed; everything downstream (breakdown, Gantt, diff, export) sees no difference.
    """

    tasks: tuple[Task, ...]
    starts: tuple[float, ...]
    origin: Origin
    label: str = ""
    metadata: dict[str, str | float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if len(self.tasks) != len(self.starts):
            raise ValueError(f"{len(self.tasks)} tasks but {len(self.starts)} start times")

    @property
    def ends(self) -> list[float]:
        """End of each task, seconds from the beginning of the step."""
        return [start + task.seconds for start, task in zip(self.starts, self.tasks, strict=True)]

    @property
    def seconds(self) -> float:
        """Duration of the step: the end of its last task."""
        return max(self.ends, default=0.0)

    @property
    def ranks(self) -> list[int]:
        """Ranks that appear, in order."""
        return sorted({task.rank for task in self.tasks})

    @property
    def resources(self) -> list[str]:
        """Resources that appear, in order of first use."""
        return list(dict.fromkeys(task.resource for task in self.tasks))

    def on(self, resource: str, rank: int | None = None) -> Sequence[tuple[Task, float]]:
        """Tasks with start times on one resource, of one rank or of all."""
        return [
            (task, start)
            for task, start in zip(self.tasks, self.starts, strict=True)
            if task.resource == resource and (rank is None or task.rank == rank)
        ]
