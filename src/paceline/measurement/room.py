"""Whether this machine has the cores and the memory that a job needs, before anything starts."""

import math
from pathlib import Path

import psutil

from paceline.errors import InputError
from paceline.launch import Launcher
from paceline.measurement.job import Job
from paceline.units import format_bytes
from paceline.workload.graph import Graph

PROCESS_BYTES = 100e6
"""The least that a process with a framework loaded takes."""

STATE_BYTES = 12
"""Weight, gradient and momentum of a trained number, in single precision."""

EMULATED_BYTES = 8
"""A weight and its gradient; nothing else of an emulated network is there."""

CGROUP_LIMITS = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)


def check_room(
    job: Job,
    graph: Graph,
    starter: Launcher,
    oversubscribe: bool = False,
    limit_bytes: float | None = None,
) -> None:
    """Raise, with what to do, unless the ranks of ``job`` have cores and memory here.

    ``limit_bytes`` is what a node may hold at the most, where that is less than it has.

    Memory is what cannot be done without: the network and its gradients once (sharded plans keep
    no more), a framework in each process, and the activations of each rank.
    """
    processes, cores = job.world_size // job.nodes, starter.hosts()[0].cores
    if cores is None:  # another machine, of which nothing is known here
        return
    wanted = processes * job.threads
    if wanted > cores and not oversubscribe and job.device == "cpu":
        threads = f" of {job.threads} threads" if job.threads > 1 else ""
        raise InputError(
            f"{processes} processes{threads} need {wanted} cores, and there are {cores}",
            f"-j 1x{max(1, cores // job.threads)} has a core for each thread; --oversubscribe "
            "lets them share cores, which makes each slower",
        )
    needed, there = least_bytes(job, graph), min(memory_bytes(), limit_bytes or math.inf)
    if job.emulated is not None:
        needed = asleep_bytes(job, graph)
    if needed > there and job.device == "cpu":
        raise InputError(
            f"{job.model} on {processes} process{'es' * (processes > 1)} needs at least "
            f"{format_bytes(needed)} of memory, and there are {format_bytes(there)}",
            "use fewer processes, a smaller --batch or a smaller network; 'paceline predict' "
            "says what a larger machine would give",
        )


def least_bytes(job: Job, graph: Graph) -> float:
    """Bytes that one node of ``job`` holds at the least."""
    processes = job.world_size // job.nodes
    cost = graph.cost(job.batch_per_rank, job.sequence, job.precision)
    activations = float(cost.activation_bytes) if job.world_size == processes else 0.0
    return STATE_BYTES * cost.trainable_parameters + processes * (PROCESS_BYTES + activations)


def asleep_bytes(job: Job, graph: Graph) -> float:
    """Bytes of all ranks of an emulated job, which are all here: weights and their gradients."""
    trained = graph.cost(job.batch_per_rank, job.sequence, job.precision).trainable_parameters
    return job.world_size * (PROCESS_BYTES + EMULATED_BYTES * trained)


def memory_bytes() -> float:
    """Memory of this machine, or what its container may have of it."""
    total = float(psutil.virtual_memory().total)
    for path in CGROUP_LIMITS:
        try:
            total = min(total, float(path.read_text(encoding="ascii")))
        except (OSError, ValueError):
            continue
    return total
