"""Which ranks of a launch this process is to run, as the engine that started it says."""

from collections.abc import Mapping
from dataclasses import dataclass


class PlacementError(Exception):
    """The engine says nothing of ranks, or of other ranks than the launch has."""


@dataclass(frozen=True)
class Engine:
    """Variables in which one engine tells a process who it is and how many there are.

    An engine whose processes stand for whole nodes says so with ``counts_nodes``. ``size`` is empty
    where it tells none. ``attempt`` are variables that tell one start of the same launch from the
    next.
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
"""The innermost engine first: torchrun may run under mpirun, and that under Slurm."""


@dataclass(frozen=True)
class Placement:
    """The ``ranks`` that this process runs, and what tells this ``attempt`` from others."""

    ranks: tuple[int, ...]
    engine: str
    attempt: str = ""


def placement(variables: Mapping[str, str], nodes: int, processes: int) -> Placement:
    """The ranks of this process in a launch of ``nodes`` x ``processes``.

    An engine may start one process per rank, or one per node, which then runs all ranks of it.
    """
    for engine in ENGINES:
        if engine.number in variables and (not engine.needs or engine.needs in variables):
            break
    else:
        known = ", ".join(engine.number for engine in ENGINES)
        raise PlacementError(
            f"nothing says which rank this is: none of {known} is set; start it with srun, "
            "mpirun or torchrun, or set RANK and WORLD_SIZE"
        )
    world = nodes * processes
    number = _whole(variables, engine.number)
    size = _whole(variables, engine.size) if engine.size in variables else world
    per_node = engine.counts_nodes or (size == nodes and size != world)
    if not per_node and size != world:
        raise PlacementError(
            f"{engine.name} started {size} process{'es' * (size != 1)} and the launch has "
            f"{nodes}x{processes}: start {world}, one per rank, or {nodes}, one per node"
        )
    if not 0 <= number < (nodes if per_node else world):
        raise PlacementError(f"{engine.number} is {number}, and the launch has {nodes}x{processes}")
    attempt = ".".join(variables.get(name, "") for name in engine.attempt)
    return Placement(node_ranks(number, processes) if per_node else (number,), engine.name, attempt)


def node_ranks(node: int, processes: int) -> tuple[int, ...]:
    """The ranks of a node: they are numbered node by node."""
    return tuple(range(node * processes, (node + 1) * processes))


def _whole(variables: Mapping[str, str], name: str) -> int:
    try:
        return int(variables[name])
    except ValueError:
        raise PlacementError(f"{name} is '{variables[name]}', which is no number") from None
