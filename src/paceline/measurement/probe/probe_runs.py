"""Runs the probe worker on ranks of any launcher and summarises its repetitions."""

import shutil
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from paceline.errors import PacelineError
from paceline.frameworks.command import interpreter, worker_variables
from paceline.frameworks.framework_registry import framework
from paceline.hardware.machine_profile import CollectivePoint
from paceline.launch import Launcher, LaunchRequest
from paceline.measurement.events import Event, last_event, read_events
from paceline.measurement.failures import failure_reason
from paceline.measurement.run_job import events_path, launch_directory, thread_variables, write_job
from paceline.store import Store
from paceline.store.launch import new_launch_id

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
    """Events of every rank of the probe worker; a failed rank is an error."""
    chosen = framework("torch-ddp")
    python = interpreter(chosen)
    directory = launch_directory(store, f"probe-{new_launch_id()}")
    write_job(directory / "job.json", {**DEFAULTS, **job})
    command = (python, str(chosen.worker.with_name("torch_probe.py")), str(directory / "job.json"))
    variables = {**thread_variables(job["threads"]), **worker_variables(chosen)}
    exited = starter.launch(
        LaunchRequest(
            lambda rank: (*command, str(events_path(directory, rank))),
            directory,
            timeout_seconds,
            nodes=nodes,
            processes=processes,
            variables=lambda rank: variables,
            cores_per_rank=job["threads"],
        )
    )
    events = [read_events(events_path(directory, rank)) for rank in range(nodes * processes)]
    if any(last_event(rank, "end") is None for rank in events):
        raise PacelineError(
            f"the probe failed: {failure_reason(exited, events)}", f"see the log in {directory}"
        )
    _discard(directory)
    return events


def _discard(directory: Path) -> None:
    """Remove the files of a successful probe, whose results are in the profile."""
    shutil.rmtree(directory, ignore_errors=True)


def values(events: Sequence[Event], kind: str, key: str, value: int) -> list[float]:
    """Seconds of every repetition of one kernel at one size on one rank."""
    return next(
        event["seconds"] for event in events if event["event"] == kind and event[key] == value
    )


def median(ranks: Sequence[Sequence[Event]], kind: str, key: str, value: int) -> float:
    """Mean over ranks of the median repetition, in seconds."""
    return statistics.mean(statistics.median(values(rank, kind, key, value)) for rank in ranks)


def collective_point(ranks: Sequence[Sequence[Event]], size: int) -> CollectivePoint:
    """Point of the curve for one size: a collective lasts until its slowest rank is done."""
    repetitions = zip(*(values(rank, "all_reduce", "bytes", size) for rank in ranks), strict=False)
    slowest = sorted(max(repetition) for repetition in repetitions)
    lower, middle, upper = statistics.quantiles(slowest, n=4)
    return CollectivePoint(float(size), middle, lower, upper)
