"""Takes a rank's identity from the MPI launcher that started it."""

import os
import sys

RANKS = ("PMI_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK")
WORLDS = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE")


def adopt() -> None:
    """Set RANK, LOCAL_RANK and WORLD_SIZE, write to this rank's events, keep to its cores.

    Only the first rank's standard input is the launcher's: it alone ends with it, and MPI ends
    the others.
    """
    rank = next((os.environ[name] for name in RANKS if name in os.environ), None)
    world = next((os.environ[name] for name in WORLDS if name in os.environ), None)
    if rank is None or world is None:
        return
    os.environ.update(RANK=rank, LOCAL_RANK=rank, WORLD_SIZE=world)
    sys.argv[2] = sys.argv[2].replace("rank-0.", f"rank-{rank}.")
    if rank != "0":
        os.environ.pop("PACELINE_WATCH_STDIN", None)
    if hasattr(os, "sched_setaffinity"):
        cores = sorted(os.sched_getaffinity(0))
        share = len(cores) // int(world)
        if share:
            os.sched_setaffinity(0, cores[int(rank) * share : (int(rank) + 1) * share])
