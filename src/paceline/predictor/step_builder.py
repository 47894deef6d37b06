"""Lists the tasks of a step while keeping its clocks, so that overlap can cost something."""

from paceline.step import Phase, Task
from paceline.step.schedule import Timetable

COMPUTE = "compute"
NETWORK = "network"
COPIES_LINK = "network of copies"
"""Lane of sums among copies of shards, where these do not share links with other messages."""
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


class StepBuilder(Timetable):
    """A timetable whose computing is slowed down by messages in flight.

    Compute tasks are stretched by ``interference`` for as long as the network of their rank is
    busy when they start; that is exact when every message that can be in flight by then has
    been listed or announced as waiting.
    """

    def __init__(self, interference: float = 0.0) -> None:
        super().__init__()
        self.interference = interference
        self.waiting_seconds = 0.0

    def compute(
        self,
        name: str,
        phase: Phase,
        seconds: float,
        after: tuple[int, ...] = (),
        layer: str = "",
        rank: int = 0,
    ) -> int:
        """Work on the device, in order; stretched while the network is busy."""
        if self.interference > 0:
            start = self.start_on((rank, COMPUTE), after)
            free = max(self.free_at(NETWORK, rank), self.free_at(COPIES_LINK, rank))
            busy = free + self.waiting_seconds - start
            seconds = interfered_seconds(seconds, busy, self.interference)
        return self.add(Task(name, phase, COMPUTE, seconds, after, rank, layer))

    def send(
        self,
        name: str,
        seconds: float,
        size_bytes: float,
        after: tuple[int, ...] = (),
        layer: str = "",
        lane: str = NETWORK,
        rank: int = 0,
    ) -> int:
        """A message on a link, in order."""
        return self.add(
            Task(name, Phase.COMMUNICATE, lane, seconds, after, rank, layer, size_bytes)
        )
