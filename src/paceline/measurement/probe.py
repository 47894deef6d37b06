"""Measures this machine and keeps its profile until it is stale or the machine changes."""

import shutil
import statistics
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from paceline.errors import PacelineError
from paceline.frameworks.command import interpreter, worker_variables
from paceline.frameworks.registry import framework
from paceline.hardware.profile import CollectivePoint, Colocation, MachineProfile
from paceline.launch import LaunchRequest, LocalLauncher
from paceline.measurement.environment import load_average, machine_fingerprint
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
from paceline.store.database import now

GEMM_SIZES = (64, 128, 256, 512, 1024)
COPY_BYTES = (192 * 2**20,)
ALL_REDUCE_BYTES = tuple(4**power for power in range(2, 13))
TIMEOUT_SECONDS = 300.0


def current_profile(store: Store, threads: int = 1) -> MachineProfile | None:
    """The stored profile of this machine, if there is one that is not stale."""
    profile = _stored_profile(store, threads)
    return None if profile is None or profile.is_stale() else profile


def probe_machine(
    store: Store,
    rank_counts: Sequence[int] = (2,),
    threads: int = 1,
    seconds_per_point: float = 0.25,
    on_stage: Callable[[str], None] = lambda stage: None,
) -> MachineProfile:
    """Measure arithmetic and memory on one rank, then these and all-reduce on several; keep it.

    With several ranks all run the same kernels at once, which shows what sharing the machine
    costs without any communication.
    """
    load_before = load_average()
    on_stage("1 rank: products and copies")
    alone = _run(store, 1, threads, seconds_per_point)
    gemm = {size: 2 * size**3 / _median(alone, "gemm", "size", size) for size in GEMM_SIZES}
    copy_seconds = _median(alone, "copy", "bytes", COPY_BYTES[0])
    all_reduce: dict[int, tuple[CollectivePoint, ...]] = {}
    colocation: dict[int, Colocation] = {}
    for ranks in rank_counts:
        on_stage(f"{ranks} ranks: products, copies and all-reduce")
        together = _run(store, ranks, threads, seconds_per_point)
        largest = GEMM_SIZES[-1]
        colocation[ranks] = Colocation(
            arithmetic=_median(together, "gemm", "size", largest)
            * gemm[largest]
            / (2 * largest**3),
            memory=_median(together, "copy", "bytes", COPY_BYTES[0]) / copy_seconds,
        )
        all_reduce[ranks] = tuple(_point(together, size) for size in sorted(ALL_REDUCE_BYTES))
    hello = only(alone[0], "hello") or {"versions": {}}
    profile = MachineProfile(
        machine=machine_fingerprint(),
        measured_at=now(),
        source=f"paceline probe, torch {hello['versions'].get('framework', '?')}, gloo, loopback",
        threads=threads,
        gemm_flops=gemm,
        memory_bandwidth=COPY_BYTES[0] / copy_seconds,
        all_reduce=all_reduce,
        colocation=colocation,
        load_average=load_before,
        notes=_notes(load_before),
    )
    before = _stored_profile(store, threads)
    kept = replace(profile, training=None if before is None else before.training)
    save_profile(store, kept)
    return kept


def save_profile(store: Store, profile: MachineProfile) -> None:
    """Keep a profile of this machine; later predictions use the newest."""
    store.save_profile(_profile_key(profile.threads), profile.to_json())


def _stored_profile(store: Store, threads: int) -> MachineProfile | None:
    document = store.latest_profile(_profile_key(threads))
    return None if document is None else MachineProfile.from_json(document)


def _profile_key(threads: int) -> str:
    return f"{machine_fingerprint()} threads={threads}"


def _notes(load: float) -> tuple[str, ...]:
    if load > 0.5:
        return (f"load average was {load:.1f} before the probe: rates may be too low",)
    return ()


def _run(store: Store, ranks: int, threads: int, seconds_per_point: float) -> list[list[Event]]:
    chosen = framework("torch-ddp")
    python = interpreter(chosen)
    directory = launch_directory(store, f"probe-{new_launch_id()}")
    job: dict[str, Any] = {
        "threads": threads,
        "gemm_sizes": GEMM_SIZES,
        "copy_bytes": COPY_BYTES,
        "all_reduce_bytes": ALL_REDUCE_BYTES if ranks > 1 else (),
        "seconds_per_point": seconds_per_point,
        "minimum_repetitions": 5,
        "maximum_repetitions": 200,
    }
    write_job(directory / "job.json", job)
    words = (python, str(chosen.worker.with_name("torch_probe.py")), str(directory / "job.json"))
    variables = {**thread_variables(threads), **worker_variables(chosen)}
    exited = LocalLauncher().launch(
        LaunchRequest(
            lambda rank: (*words, str(events_path(directory, rank))),
            directory,
            TIMEOUT_SECONDS,
            processes=ranks,
            variables=lambda rank: variables,
            cores_per_rank=threads,
        )
    )
    events = [read_events(events_path(directory, rank)) for rank in range(ranks)]
    if any(only(rank, "end") is None for rank in events):
        raise PacelineError(
            f"the probe failed: {failure_reason(exited, events)}", f"its log is in {directory}"
        )
    _discard(directory)
    return events


def _discard(directory: Path) -> None:
    """Remove the files of a probe that went well: the profile holds what they said."""
    shutil.rmtree(directory, ignore_errors=True)


def _values(events: list[Event], kind: str, key: str, value: int) -> list[float]:
    return next(
        event["seconds"] for event in events if event["event"] == kind and event[key] == value
    )


def _median(ranks: list[list[Event]], kind: str, key: str, value: int) -> float:
    return statistics.mean(statistics.median(_values(rank, kind, key, value)) for rank in ranks)


def _point(ranks: list[list[Event]], size: int) -> CollectivePoint:
    """The curve's point for one size: a collective lasts until its slowest rank has it."""
    repetitions = zip(*(_values(rank, "all_reduce", "bytes", size) for rank in ranks), strict=False)
    slowest = sorted(max(one) for one in repetitions)
    lower, middle, upper = statistics.quantiles(slowest, n=4)
    return CollectivePoint(float(size), middle, lower, upper)
