"""Whether frameworks train the same: parameters and first losses, before they are compared."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from paceline.errors import InputError
from paceline.measure.events import only, read_events
from paceline.measure.frameworks import framework
from paceline.measure.job import Job, Optimiser
from paceline.measure.run import events_path, run_job
from paceline.store import Launch, Status, Store
from paceline.testing.adapter_suite import COUNTED_LOSSES
from paceline.testing.reference import check_reference, reference_losses
from paceline.workload import Graph

PARITY_BATCH = 4
"""Samples of the short runs whose losses are compared: NumPy follows them in seconds."""
PARITY_LEARNING_RATE = 0.0001
"""Small enough that five steps of a deep network on few samples do not magnify rounding: with
0.01 the losses of ResNet-44 in single precision part from those in double by 2 %."""
PARITY_TOLERANCE = 5e-5
"""Relative: ten times what frameworks differ by, half of what updates that are 1 % off make."""


@dataclass(frozen=True)
class Parity:
    """One framework beside the reference; ``reason`` is empty where it trains the same.

    ``difference`` is the largest relative difference of a loss; NaN where there is none.
    """

    framework: str
    parameters: int | None
    losses: tuple[float, ...]
    difference: float
    reason: str = ""


@dataclass(frozen=True)
class ParityTable:
    """Every framework beside one reference: NumPy's, or, where it cannot, the first framework."""

    model: str
    reference: str
    losses: tuple[float, ...]
    parameters: int
    rows: tuple[Parity, ...]

    @property
    def same(self) -> list[str]:
        """Frameworks that train the same."""
        return [row.framework for row in self.rows if not row.reason]


def check_parity(
    graph: Graph,
    names: Sequence[str],
    store: Store,
    study: str,
    timeout_seconds: float,
    on_launch: Callable[[str], None] = lambda name: None,
) -> ParityTable:
    """Run each framework for a few steps of one process and compare its losses."""
    described = int(graph.cost(1).parameters)
    jobs = {name: parity_job(graph, name) for name in names}
    runs: dict[str, Launch | str] = {}
    for name, job in jobs.items():
        if not framework(name).claims(job.graph):
            runs[name] = f"its worker has no operation for {graph.name}"
            continue
        on_launch(name)
        runs[name] = run_job(job, store, study, timeout_seconds)
    reference, losses = _reference(jobs[names[0]], runs)
    rows = tuple(_row(name, run, losses, described, store) for name, run in runs.items())
    return ParityTable(graph.name, reference, tuple(losses), described, rows)


def parity_job(graph: Graph, name: str) -> Job:
    """A few steps of a few samples, the same in every framework."""
    return Job(
        model=graph.name,
        graph=graph.to_json(),
        batch_per_rank=PARITY_BATCH,
        framework=name,
        steps=COUNTED_LOSSES,
        warmup_steps=0,
        sequence=graph.sequence,
        optimiser=Optimiser(learning_rate=PARITY_LEARNING_RATE),
    )


def _reference(job: Job, runs: dict[str, Launch | str]) -> tuple[str, list[float]]:
    try:
        check_reference(job.graph)
    except InputError:
        for name, launch in _finished(runs):
            return name, list(launch.outcome.ranks[0].losses)
        return "none", []
    return "NumPy", reference_losses(job)


def _finished(runs: dict[str, Launch | str]) -> Iterator[tuple[str, Launch]]:
    for name, run in runs.items():
        if isinstance(run, Launch) and run.status is Status.FINISHED:
            yield name, run


def _row(
    name: str, run: Launch | str, reference: Sequence[float], described: int, store: Store
) -> Parity:
    if isinstance(run, str):
        return Parity(name, None, (), math.nan, run)
    if run.status is not Status.FINISHED:
        return Parity(name, None, (), math.nan, run.outcome.reason or str(run.status))
    directory = store.path.parent / "launches" / run.id
    ready = only(read_events(events_path(directory, 0)), "ready")
    parameters = int(ready["parameters"]) if ready else 0
    losses = run.outcome.ranks[0].losses
    worst = max(abs(a - b) / abs(b) for a, b in zip(losses, reference, strict=True))
    reason = ""
    if parameters != described:
        reason = f"{parameters} parameters, described {described}"
    elif not worst <= PARITY_TOLERANCE:
        reason = f"losses differ by {worst:.1e}, more than {PARITY_TOLERANCE}"
    return Parity(name, parameters, losses, worst, reason)
