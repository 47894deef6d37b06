"""What steps are told in: computing on a device, messages on links, with the clocks of both.

The same telling gives tasks for a timeline (`StepBuilder`) or times alone, of one step or of
arrays of them (`paceline.predictor.step_clocks`).
"""

from collections.abc import Callable
from typing import NamedTuple, Protocol

from paceline.predictor.step_costs import Seconds
from paceline.step import Phase, Step, Task, breakdown
from paceline.step.schedule import Timetable

COMPUTE = "compute"
NETWORK = "network"
COPIES_LINK = "network of copies"
"""Lane of sums among copies of shards, where these do not share links with other messages."""
REPLICA_LINK = "replica link"
"""Lane of messages between the devices of one replica."""


class WholePass(NamedTuple):
    """A pass through all layers: seconds of computing, and of exchanges that it waits for."""

    work: Seconds
    exchange: Seconds


class StepTelling(Protocol):
    """The verbs of a step. What they return is what later ones wait for."""

    def compute(
        self,
        name: str,
        phase: Phase,
        seconds: Seconds,
        after: tuple[int, ...] = (),
        layer: str = "",
    ) -> int:
        """Work on the device, in order; stretched while the network is busy."""

    def send(
        self,
        name: str,
        seconds: Seconds,
        size_bytes: float,
        after: tuple[int, ...] = (),
        layer: str = "",
        lane: str = NETWORK,
    ) -> int:
        """A message on a link, in order."""

    def exchange(self, seconds: Seconds, layer: str, after: int, lane: str = REPLICA_LINK) -> int:
        """Messages with devices of the same replica, which the device waits for."""

    def beside(self, name: str, phase: Phase, seconds: Seconds, after: tuple[int, ...] = ()) -> int:
        """Work on a lane of its phase's own, in order."""

    def earlier_micro_batches(
        self, count: Seconds, forward: WholePass, backward: WholePass, scatter: Seconds
    ) -> None:
        """So many micro-batches; each scatters its gradients beside the next one."""

    def repeat(self, tell: "Callable[[StepTelling], None]", times: Seconds) -> tuple[int, ...]:
        """A whole step of its own so many times; what messages behind it wait for."""

    def announce(self, seconds: float) -> None:
        """A message of so many seconds waits for the network, not yet placed."""

    def withdraw(self, seconds: float) -> None:
        """An announced message of so many seconds waits no longer."""

    def free_at(self, lane: str) -> Seconds:
        """When a lane has finished everything placed so far, seconds."""

    def end_of(self, placed: int) -> Seconds:
        """When something placed ends, seconds."""


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
        self._announced, self._announced_seconds, self._announced_at = 0, 0.0, 0.0

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
            if self._announced:
                free = max(free, self._announced_at) + self._announced_seconds
            seconds = interfered_seconds(seconds, free - start, self.interference)
        return self.add(Task(name, phase, COMPUTE, seconds, after, rank, layer))

    def send(
        self,
        name: str,
        seconds: Seconds,
        size_bytes: float,
        after: tuple[int, ...] = (),
        layer: str = "",
        lane: str = NETWORK,
        rank: int = 0,
    ) -> int:
        """A message on a link, in order."""
        return self.add(
            Task(name, Phase.COMMUNICATE, lane, float(seconds), after, rank, layer, size_bytes)
        )

    def beside(self, name: str, phase: Phase, seconds: float, after: tuple[int, ...] = ()) -> int:
        """Work on a lane of its phase's own, in order."""
        return self.add(Task(name, phase, str(phase), seconds, after))

    def exchange(self, seconds: float, layer: str, after: int, lane: str = REPLICA_LINK) -> int:
        """Messages with devices of the same replica, which the device waits for."""
        sent = self.send(f"exchange {layer}", seconds, 0.0, (after,), layer, lane)
        return self.compute(f"wait {layer}", Phase.WAIT, 0.0, (sent,), layer)

    def earlier_micro_batches(
        self, count: int, forward: WholePass, backward: WholePass, scatter: float
    ) -> None:
        """So many micro-batches, one task each way; they scatter gradients beside the next."""
        for number in range(count):
            self._pass(f"forward {number}", Phase.FORWARD, forward)
            ready = self._pass(f"backward {number}", Phase.BACKWARD, backward)
            if scatter > 0:
                self.send(f"reduce-scatter {number}", scatter, 0.0, (ready,))

    def _pass(self, name: str, phase: Phase, own: WholePass) -> int:
        done = self.compute(name, phase, own.work)
        return self.exchange(own.exchange, name, done) if own.exchange > 0 else done

    def repeat(self, tell: Callable[[StepTelling], None], times: int) -> tuple[int, ...]:
        """A whole step so many times, by phase: what it exposes, and what runs beside it."""
        if times < 1:
            return ()
        told = StepBuilder(self.interference)
        tell(told)
        one = told.build()
        parts = breakdown(one)
        within = min(_busy(one, REPLICA_LINK)[0], parts.exposed_communication_seconds)
        busy, size = _busy(one, NETWORK, COPIES_LINK)
        busy = busy or 1.0
        exposed = parts.exposed_communication_seconds - within
        hidden = parts.hidden_communication_seconds
        name = f"{times} earlier micro-batches"
        done = self.add(Task(name, Phase.WAIT, COMPUTE, 0.0))
        for lane, seconds in ((REPLICA_LINK, within), (NETWORK, exposed)):
            sent = size * seconds / busy if lane == NETWORK else 0.0
            done = self.send(name, times * seconds, times * sent, (done,), lane=lane)
        self.send(name, times * hidden, times * size * hidden / busy, (done,))
        for phase, seconds in parts.exposed.items():
            if phase is not Phase.COMMUNICATE:
                done = self.add(Task(name, phase, COMPUTE, times * seconds, (done,)))
        return (done,)

    def announce(self, seconds: float) -> None:
        """A message of so many seconds waits for the network, not yet placed."""
        self._announced_at = self._announced_at if self._announced else self.free_at(COMPUTE)
        self._announced += 1
        self._announced_seconds += seconds

    def withdraw(self, seconds: float) -> None:
        """An announced message of so many seconds waits no longer."""
        self._announced -= 1
        self._announced_seconds -= seconds


def _busy(step: Step, *lanes: str) -> tuple[float, float]:
    """Seconds and bytes of everything on some lanes."""
    tasks = [task for lane in lanes for task, _ in step.on(lane)]
    return sum(task.seconds for task in tasks), sum(task.size_bytes for task in tasks)
