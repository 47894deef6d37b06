"""Determines the ranks of this process from the environment variables of its launcher."""

from collections.abc import Mapping
from dataclasses import dataclass


class PlacementError(Exception):
    """The launcher sets no rank, or one that does not fit the launch."""


@dataclass(frozen=True)
class Engine:
    """Environment variables in which a launcher passes the rank and the number of ranks.

    ``counts_nodes`` is set where ``number`` is that of a node, not of a rank. ``size`` is empty
    where the launcher does not set it. ``attempt`` are variables that differ between restarts of
    the same launch.
    """

    name: str
    number: str
    size: str = ""
    needs: str = ""
    counts_nodes: bool = False
    attempt: tuple[str, ...] = ()


SLURM_ATTEMPT = ("SLURM_JOB_ID", "SLURM_RESTART_COUNT")
ENGINES = (
    Engine(
        "torchrun",
        "RANK",
        "WORLD_SIZE",
        needs="TORCHELASTIC_RUN_ID",
        attempt=("TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT"),
    ),
    Engine("Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    Engine("MPICH", "PMI_RANK", "PMI_SIZE"),
    Engine("Slurm", "SLURM_PROCID", "SLURM_NTASKS", attempt=SLURM_ATTEMPT),
    Engine("PMIx", "PMIX_RANK"),
    Engine("the environment", "RANK", "WORLD_SIZE"),
    Engine("Kubernetes", "JOB_COMPLETION_INDEX", counts_nodes=True),
)
"""The innermost launcher first: torchrun may run under mpirun, and mpirun under Slurm."""


@dataclass(frozen=True)
class Placement:
    """The ``ranks`` of this process, and an identifier of this ``attempt``."""

    ranks: tuple[int, ...]
    engine: str
    attempt: str = ""


def placement(variables: Mapping[str, str], nodes: int, processes: int) -> Placement:
    """Return the ranks of this process in a launch of ``nodes`` x ``processes``.

    A launcher may start one process per rank, or one per node, which then runs all its ranks.
    """
    for engine in ENGINES:
        if engine.number in variables and (not engine.needs or engine.needs in variables):
            break
    else:
        known = ", ".join(engine.number for engine in ENGINES)
        raise PlacementError(
            f"the rank is unknown: none of {known} is set; start the agent with srun, "
            "mpirun or torchrun, or set RANK and WORLD_SIZE"
        )
    world = nodes * processes
    number = _integer(variables, engine.number)
    size = _integer(variables, engine.size) if engine.size in variables else world
    per_node = engine.counts_nodes or (size == nodes and size != world)
    if not per_node and size != world:
        raise PlacementError(
            f"{engine.name} started {size} process{'es' * (size != 1)}, but the launch is "
            f"{nodes}x{processes}: start {world}, one per rank, or {nodes}, one per node"
        )
    if not 0 <= number < (nodes if per_node else world):
        raise PlacementError(
            f"{engine.number}={number} is out of range for {nodes}x{processes} ranks"
        )
    attempt = ".".join(variables.get(name, "") for name in engine.attempt)
    return Placement(node_ranks(number, processes) if per_node else (number,), engine.name, attempt)


def node_ranks(node: int, processes: int) -> tuple[int, ...]:
    """Return the ranks of a node: ranks are numbered node by node."""
    return tuple(range(node * processes, (node + 1) * processes))


def _integer(variables: Mapping[str, str], name: str) -> int:
    try:
        return int(variables[name])
    except ValueError:
        raise PlacementError(f"{name} must be an integer (got '{variables[name]}')") from None
