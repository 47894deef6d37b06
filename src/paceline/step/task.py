"""Task and Step: the common form of measurements and predictions."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum


class Phase(StrEnum):
    """Phase of training that a task belongs to."""

    INPUT = "input"
    COPY = "copy"
    FORWARD = "forward"
    BACKWARD = "backward"
    COMMUNICATE = "communicate"
    UPDATE = "update"
    WAIT = "wait"
    OTHER = "other"


class Origin(StrEnum):
    """Whether the times of a step were measured or predicted."""

    MEASURED = "measured"
    PREDICTED = "predicted"


@dataclass(frozen=True, slots=True)
class Task:
    """One piece of work on one resource of one rank.

    ``seconds`` is its duration, ``after`` the indices of the earlier tasks that it depends on,
    ``resource`` the lane it occupies (``compute``, ``network``, ``input``, ...). Tasks of one
    lane run in the order of the list. ``size_bytes`` and ``flops`` are its traffic and work;
    ``layer`` names its layer or bucket, ``group`` the ranks of a message (``mesh_tp 0,1``) if it
    is not sent by all.
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

    Starts are measured, or computed by the scheduler; breakdown, Gantt chart, difference and
    export treat both the same way.
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
        return [start + task.seconds for start, task in zip(self.starts, self.tasks, strict=True)]

    @property
    def seconds(self) -> float:
        """Duration of the step: the end of its last task."""
        return max(self.ends, default=0.0)

    @property
    def ranks(self) -> list[int]:
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
