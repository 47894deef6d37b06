"""Probes this machine and stores its profile until it is stale or the hardware changes."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from paceline.hardware.machine_profile import CollectivePoint, Colocation, MachineProfile
from paceline.launch import LocalLauncher
from paceline.measurement.environment import load_average, machine_fingerprint
from paceline.measurement.events import Event, last_event
from paceline.measurement.probe.probe_runs import collective_point, median, run_probe
from paceline.store import Store
from paceline.store.database import now

GEMM_SIZES = (64, 128, 256, 512, 1024)
COPY_BYTES = (192 * 2**20,)
ALL_REDUCE_BYTES = tuple(4**power for power in range(2, 13))


def current_profile(store: Store, threads: int = 1) -> MachineProfile | None:
    """Stored profile of this machine; None if there is none or it is stale."""
    profile = _stored_profile(store, threads)
    return None if profile is None or profile.is_stale() else profile


def probe_machine(
    store: Store,
    rank_counts: Sequence[int] = (2,),
    threads: int = 1,
    seconds_per_point: float = 0.25,
    on_stage: Callable[[str], None] = lambda stage: None,
) -> MachineProfile:
    """Measure GEMM and memory copies on one rank, then with all-reduce on several; store both.

    Several ranks run the same kernels at once, which shows memory and cache contention without
    communication.
    """
    load_before = load_average()
    on_stage("1 rank: GEMM and memory copies")
    alone = _run(store, 1, threads, seconds_per_point)
    gemm = {size: 2 * size**3 / median(alone, "gemm", "size", size) for size in GEMM_SIZES}
    copy_seconds = median(alone, "copy", "bytes", COPY_BYTES[0])
    all_reduce: dict[int, tuple[CollectivePoint, ...]] = {}
    colocation: dict[int, Colocation] = {}
    for ranks in rank_counts:
        on_stage(f"{ranks} ranks: GEMM, memory copies and all-reduce")
        together = _run(store, ranks, threads, seconds_per_point)
        largest = GEMM_SIZES[-1]
        colocation[ranks] = Colocation(
            arithmetic=median(together, "gemm", "size", largest) * gemm[largest] / (2 * largest**3),
            memory=median(together, "copy", "bytes", COPY_BYTES[0]) / copy_seconds,
        )
        all_reduce[ranks] = tuple(
            collective_point(together, size) for size in sorted(ALL_REDUCE_BYTES)
        )
    hello = last_event(alone[0], "hello") or {"versions": {}}
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
    # The fit to measured training is kept: a probe does not change it.
    before = _stored_profile(store, threads)
    kept = replace(profile, training=None if before is None else before.training)
    save_profile(store, kept)
    return kept


def save_profile(store: Store, profile: MachineProfile) -> None:
    """Store a profile of this machine; predictions use the newest."""
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
    job = {
        "threads": threads,
        "gemm_sizes": GEMM_SIZES,
        "copy_bytes": COPY_BYTES,
        "all_reduce_bytes": ALL_REDUCE_BYTES if ranks > 1 else (),
        "seconds_per_point": seconds_per_point,
    }
    return run_probe(store, LocalLauncher(), job, processes=ranks)
