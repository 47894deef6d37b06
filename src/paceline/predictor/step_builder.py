"""Lists the tasks of a step while keeping its clocks, so that overlap can cost something."""

from paceline.step import Origin, Phase, Step, Task

COMPUTE = "compute"
NETWORK = "network"
REPLICA_LINK = "replica link"
"""Lane of messages between the devices of one replica."""


def interfered_seconds(work_seconds: float, busy_seconds: float, interference: float) -> float:
    """Seconds that computing takes while a link is busy for the first ``busy_seconds`` of it.

    Messages in flight take memory bandwidth, copy engines and cores from what computes: while
    the link is busy, work that needs 1 s alone needs ``1 + interference``.
    """
    if interference <= 0 or busy_seconds <= 0:
        return work_seconds
    slowed = busy_seconds / (1.0 + interference)
    return work_seconds + interference * min(work_seconds, slowed)


class StepBuilder:
    """Appends tasks in issue order and knows when each lane gets free.

    Indices that the methods return are what later tasks wait for. Compute tasks are stretched
    by ``interference`` for as long as the network is busy when they start; that is exact when
    every message that can be in flight by then has been listed or announced as waiting.
    """

    def __init__(self, interference: float = 0.0) -> None:
        self.tasks: list[Task] = []
        self.interference = interference
        self.waiting_seconds = 0.0
        self._starts: list[float] = []
        self._ends: list[float] = []
        self._free: dict[str, float] = {}

    def free_at(self, lane: str) -> float:
        """When the lane has finished everything listed so far, seconds."""
        return self._free.get(lane, 0.0)

    def end_of(self, task: int) -> float:
        """When a listed task ends, seconds."""
        return self._ends[task]

    def compute(
        self,
        name: str,
        phase: Phase,
        seconds: float,
        after: tuple[int, ...] = (),
        layer: str = "",
    ) -> int:
        """Work on the device, in order; stretched while the network is busy."""
        if self.interference > 0:
            start = self._start(COMPUTE, after)
            busy = self.free_at(NETWORK) + self.waiting_seconds - start
            seconds = interfered_seconds(seconds, busy, self.interference)
        return self.add(Task(name, phase, COMPUTE, seconds, after, layer=layer))

    def send(
        self,
        name: str,
        seconds: float,
        size_bytes: float,
        after: tuple[int, ...] = (),
        layer: str = "",
        lane: str = NETWORK,
    ) -> int:
        """A message on a link, in order."""
        return self.add(
            Task(name, Phase.COMMUNICATE, lane, seconds, after, layer=layer, size_bytes=size_bytes)
        )

    def add(self, task: Task) -> int:
        """Any task; its index."""
        start = self._start(task.resource, task.after)
        end = start + task.seconds
        self.tasks.append(task)
        self._starts.append(start)
        self._ends.append(end)
        self._free[task.resource] = end
        return len(self.tasks) - 1

    def build(self, label: str) -> Step:
        """The step with the starts that `paceline.step.schedule` would give its tasks."""
        return Step(tuple(self.tasks), tuple(self._starts), Origin.PREDICTED, label)

    def _start(self, lane: str, after: tuple[int, ...]) -> float:
        start = self._free.get(lane, 0.0)
        for task in after:
            if self._ends[task] > start:
                start = self._ends[task]
        return start
