"""Ranks on this machine, started by Paceline itself."""

import contextlib
import os
import subprocess
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from paceline.launch.launcher import Detection, Launcher, LaunchExit, LaunchRequest
from paceline.launch.ports import LOOPBACK, meeting_port
from paceline.launch.processes import Process, run_to_end, start_process


class LocalLauncher(Launcher):
    """Starts each rank as a process of this machine, on cores of its own where there are enough.

    A rank also ends by itself when this process dies, since its standard input closes.
    """

    name = "local"

    def detect(self) -> Detection:
        """It always can."""
        (host,) = self.hosts()
        return Detection(True, f"{host.cores} cores")

    def launch(self, request: LaunchRequest) -> LaunchExit:
        """Run each rank in a session of its own."""
        port = meeting_port(request.port)
        cores = pinned_cores(request.world_size)
        starts = [
            partial(
                start_logged,
                request.command(rank),
                {**request.rank_variables(rank, LOOPBACK, port), "PACELINE_WATCH_STDIN": "1"},
                log,
                None if cores is None else cores[rank],
            )
            for rank, log in enumerate(request.logs)
        ]
        return run_to_end(
            starts,
            request.logs,
            request.timeout_seconds,
            request.peer_grace_seconds,
            request.on_event,
        )


def start_logged(
    command: Sequence[str], variables: dict[str, str], log: Path, cores: set[int] | None = None
) -> Process:
    """Start a command in a session of its own, with ``log`` for what it prints."""
    with log.open("wb") as output:
        process = start_process(command, variables, output, stdin=subprocess.PIPE)
    if cores is not None:
        with contextlib.suppress(OSError):
            os.sched_setaffinity(process.pid, cores)
    return process


def pinned_cores(world_size: int) -> list[set[int]] | None:
    """Each rank's share of the cores, so that ranks do not wander onto each other's.

    None where there are fewer cores than ranks, or where the system cannot pin.
    """
    if sys.platform != "linux":
        return None
    available = sorted(os.sched_getaffinity(0))
    share = len(available) // world_size
    if share == 0:
        return None
    return [set(available[rank * share : (rank + 1) * share]) for rank in range(world_size)]
