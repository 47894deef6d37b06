"""Checks that this machine has enough cores and memory for a job, before it starts."""

import math
from pathlib import Path

import psutil

from paceline.errors import InputError
from paceline.launch import Launcher
from paceline.measurement.job import Job
from paceline.units import format_bytes
from paceline.workload.graph import Graph

PROCESS_BYTES = 100e6
"""Minimum memory of a process that has loaded a framework."""

STATE_BYTES = 12
"""Weight, gradient and momentum of a parameter, in single precision."""

EMULATED_BYTES = 8
"""Weight and gradient of a parameter; an emulated network has nothing else in memory."""

CGROUP_LIMITS = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)


def check_resources(
    job: Job,
    graph: Graph,
    starter: Launcher,
    oversubscribe: bool = False,
    limit_bytes: float | None = None,
) -> None:
    """Raise an error unless this machine has the cores and the memory for ``job``.

    ``limit_bytes`` is an upper limit on the memory of a node.

    The memory is a lower bound: the network and its gradients once (sharded plans keep no more), a
    framework in each process, and the activations of each rank.
    """
    processes, cores = job.world_size // job.nodes, starter.hosts()[0].cores
    if cores is None:  # another machine, of which nothing is known here
        return
    wanted = processes * job.threads
    if wanted > cores and not oversubscribe and job.device == "cpu":
        raise InputError(
            f"the job needs {wanted} cores (processes: {processes}, threads per process: "
            f"{job.threads}), but the machine has {cores}",
            f"use -j 1x{max(1, cores // job.threads)} for one core per thread, or "
            "--oversubscribe to share cores (slower)",
        )
    needed, there = least_bytes(job, graph), min(memory_bytes(), limit_bytes or math.inf)
    if job.emulated is not None:
        needed = asleep_bytes(job, graph)
    if needed > there and job.device == "cpu":
        raise InputError(
            f"{job.model} on {processes} process{'es' * (processes > 1)} needs at least "
            f"{format_bytes(needed)} of memory, but {format_bytes(there)} are available",
            "use fewer processes, a smaller --batch or a smaller network, or predict a larger "
            "machine with 'paceline predict'",
        )


def least_bytes(job: Job, graph: Graph) -> float:
    """Lower bound of the bytes on one node of ``job``."""
    processes = job.world_size // job.nodes
    cost = graph.cost(job.batch_per_rank, job.sequence, job.precision)
    activations = float(cost.activation_bytes) if job.world_size == processes else 0.0
    return STATE_BYTES * cost.trainable_parameters + processes * (PROCESS_BYTES + activations)


def asleep_bytes(job: Job, graph: Graph) -> float:
    """Bytes of all ranks of an emulated job, all on this machine: weights and gradients."""
    trained = graph.cost(job.batch_per_rank, job.sequence, job.precision).trainable_parameters
    return job.world_size * (PROCESS_BYTES + EMULATED_BYTES * trained)


def memory_bytes() -> float:
    """Memory of this machine, or the limit of its container."""
    total = float(psutil.virtual_memory().total)
    for path in CGROUP_LIMITS:
        try:
            total = min(total, float(path.read_text(encoding="ascii")))
        except (OSError, ValueError):
            continue
    return total
