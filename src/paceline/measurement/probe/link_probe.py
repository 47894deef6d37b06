"""Measures all-reduce among the ranks of any launcher, as a training step issues it."""

from collections.abc import Sequence

from paceline.launch import Launcher
from paceline.measurement.environment import load_average
from paceline.measurement.events import last_event
from paceline.measurement.probe.allreduce_curves import CollectiveCurve
from paceline.measurement.probe.probe_runs import collective_point, run_probe
from paceline.store import Store
from paceline.store.database import now

LINK_BYTES = tuple(2**power for power in range(14, 23))
"""16 KiB to 4 MiB: beyond, the bandwidth is constant."""
IN_FLIGHT = 3
PAUSE_SECONDS = 0.02


def probe_links(
    store: Store,
    starter: Launcher,
    nodes: int,
    processes: int = 1,
    *,
    sizes: Sequence[int] = LINK_BYTES,
    seconds_per_point: float = 1.0,
    ahead: bool = False,
    timeout_seconds: float = 600.0,
) -> CollectiveCurve:
    """Measure all-reduce by size among ``nodes`` x ``processes`` ranks of a launcher.

    Several messages are in flight at a time, as in a training step with buckets, and the total is
    divided by their number: the result is throughput, not latency. With ``ahead`` ranks have
    scheduling priority over other programs, as those of emulated devices do.
    """
    starter.validate(nodes, processes)
    load = load_average()
    job = {
        "threads": 1,
        "all_reduce_bytes": tuple(sizes),
        "seconds_per_point": seconds_per_point,
        "minimum_repetitions": 4,
        "maximum_repetitions": 40,
        "in_flight": IN_FLIGHT,
        "pause_seconds": PAUSE_SECONDS,
        "ahead": ahead,
    }
    events = run_probe(
        store, starter, job, nodes=nodes, processes=processes, timeout_seconds=timeout_seconds
    )
    versions = (last_event(events[0], "hello") or {"versions": {}})["versions"]
    return CollectiveCurve(
        nodes * processes,
        nodes,
        tuple(collective_point(events, size) for size in sorted(sizes)),
        f"gloo of torch {versions.get('framework', '?')}, launcher {starter.name}",
        now(),
        load,
    )
