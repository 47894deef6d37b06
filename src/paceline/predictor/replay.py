"""A layer-wise trace replayed among other numbers of workers or on another network."""

from collections.abc import Sequence
from dataclasses import dataclass

from paceline.errors import InputError
from paceline.hardware import Cluster, Device
from paceline.hardware.link import Link
from paceline.plan.synchronisation import Synchronisation
from paceline.predictor.collectives import Group, collective_cost
from paceline.predictor.collectives.library import Library
from paceline.predictor.step_costs import CollectiveSeconds
from paceline.predictor.traces import replay
from paceline.step import Step, breakdown
from paceline.step.layer_trace import LayerTrace


@dataclass(frozen=True)
class Replayed:
    """The step of a trace among ``workers``, and that of one worker alone, seconds."""

    workers: int
    step: Step
    alone_seconds: float
    samples_per_worker: float | None

    @property
    def throughput(self) -> float | None:
        """Samples per second of all workers; None where the trace does not tell its batch."""
        if self.samples_per_worker is None:
            return None
        return self.workers * self.samples_per_worker / self.step.seconds

    @property
    def efficiency(self) -> float:
        """One worker's step over this one: the part of perfect scaling that is left."""
        return self.alone_seconds / self.step.seconds

    @property
    def exposed_seconds(self) -> float:
        """Communication that lengthens the step."""
        return breakdown(self.step).exposed_communication_seconds


def replay_on(
    trace: LayerTrace,
    workers: Sequence[int],
    link: Link,
    synchronisation: Synchronisation,
    library: str | Library,
) -> list[Replayed]:
    """``trace`` on nodes of one worker each, joined by ``link``."""
    if min(workers, default=0) < 1:
        raise InputError("a step needs a worker", "write --nodes 2,4,8")
    alone = replay(trace, synchronisation, None).seconds
    return [
        Replayed(
            count,
            replay(trace, synchronisation, _all_reduce(count, link, library)),
            alone,
            trace.batch_per_worker,
        )
        for count in workers
    ]


def _all_reduce(workers: int, link: Link, library: str | Library) -> CollectiveSeconds | None:
    if workers == 1:
        return None
    traced = Device("the traced device", "", "gpu", {})
    cluster = Cluster("traced nodes", traced, 1, workers, inter=link)
    cost = collective_cost("all_reduce", Group(workers, 1), cluster, library)
    return lambda size: float(cost.seconds(size))
