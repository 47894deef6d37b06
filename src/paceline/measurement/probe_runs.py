"""One run of the probe's worker on ranks of any launcher, and what its repetitions come to."""

import shutil
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from paceline.errors import PacelineError
from paceline.frameworks.command import interpreter, worker_variables
from paceline.frameworks.registry import framework
from paceline.hardware.profile import CollectivePoint
from paceline.launch import Launcher, LaunchRequest
from paceline.measurement.events import Event, only, read_events
from paceline.measurement.failures import failure_reason
from paceline.measurement.run import (
    events_path,
    launch_directory,
    new_launch_id,
    thread_variables,
    write_job,
)
from paceline.store import Store

TIMEOUT_SECONDS = 300.0
DEFAULTS: dict[str, Any] = {
    "gemm_sizes": (),
    "copy_bytes": (),
    "all_reduce_bytes": (),
    "minimum_repetitions": 5,
    "maximum_repetitions": 200,
}


def run_probe(
    store: Store,
    starter: Launcher,
    job: Mapping[str, Any],
    *,
    nodes: int = 1,
    processes: int = 1,
    timeout_seconds: float = TIMEOUT_SECONDS,
) -> list[list[Event]]:
    """The events of every rank of the probe's worker; one that did not end well is an error."""
    chosen = framework("torch-ddp")
    python = interpreter(chosen)
    directory = launch_directory(store, f"probe-{new_launch_id()}")
    write_job(directory / "job.json", {**DEFAULTS, **job})
    words = (python, str(chosen.worker.with_name("torch_probe.py")), str(directory / "job.json"))
    variables = {**thread_variables(job["threads"]), **worker_variables(chosen)}
    exited = starter.launch(
        LaunchRequest(
            lambda rank: (*words, str(events_path(directory, rank))),
            directory,
            timeout_seconds,
            nodes=nodes,
            processes=processes,
            variables=lambda rank: variables,
            cores_per_rank=job["threads"],
        )
    )
    events = [read_events(events_path(directory, rank)) for rank in range(nodes * processes)]
    if any(only(rank, "end") is None for rank in events):
        raise PacelineError(
            f"the probe failed: {failure_reason(exited, events)}", f"its log is in {directory}"
        )
    _discard(directory)
    return events


def _discard(directory: Path) -> None:
    """Remove the files of a probe that went well: the profile holds what they said."""
    shutil.rmtree(directory, ignore_errors=True)


def values(events: Sequence[Event], kind: str, key: str, value: int) -> list[float]:
    """Every repetition of one kernel at one size on one rank, seconds."""
    return next(
        event["seconds"] for event in events if event["event"] == kind and event[key] == value
    )


def median(ranks: Sequence[Sequence[Event]], kind: str, key: str, value: int) -> float:
    """The median repetition, as the mean over ranks, seconds."""
    return statistics.mean(statistics.median(values(rank, kind, key, value)) for rank in ranks)


def collective_point(ranks: Sequence[Sequence[Event]], size: int) -> CollectivePoint:
    """The curve's point for one size: a collective lasts until its slowest rank has it."""
    repetitions = zip(*(values(rank, "all_reduce", "bytes", size) for rank in ranks), strict=False)
    slowest = sorted(max(one) for one in repetitions)
    lower, middle, upper = statistics.quantiles(slowest, n=4)
    return CollectivePoint(float(size), middle, lower, upper)
