"""Starts ranks as processes of this machine."""

import platform
import socket
import subprocess
import sys
from collections.abc import Collection, Sequence
from functools import partial
from pathlib import Path

from paceline.errors import InputError
from paceline.launch.launcher import (
    Detection,
    Launcher,
    LaunchExit,
    LaunchHost,
    LaunchRequest,
    LaunchSettings,
    own_cores,
    usable_cores,
)
from paceline.launch.onhost.addresses import interface_addresses, is_loopback
from paceline.launch.ports import LOOPBACK, rendezvous_port
from paceline.launch.processes import Process, run_to_end, start_process
from paceline.units import plural

LOOPBACK_VARIABLES = {} if sys.platform != "linux" else {"GLOO_SOCKET_IFNAME": "lo"}
"""Makes Gloo use the loopback interface: all ranks are on this machine."""


class LocalLauncher(Launcher):
    """Starts each rank as a process of this machine, on its own cores where there are enough.

    A rank also ends when this process dies: its guard ends it, and its standard input closes.
    """

    name = "local"

    def detect(self) -> Detection:
        return Detection(True, plural(own_cores(), "core"))

    def hosts(self) -> tuple[LaunchHost, ...]:
        """Return this machine, as often as the user named it; nodes then share its cores."""
        named = self.settings.hosts or (platform.node(),)
        return tuple(LaunchHost(name, max(1, own_cores() // len(named))) for name in named)

    def configured(self, settings: LaunchSettings) -> Launcher:
        found = super().configured(settings)
        for name in settings.hosts:
            if not is_this_machine(name):
                raise InputError(
                    f"host '{name}' is not this machine; the launcher 'local' cannot start "
                    "processes there",
                    "use --launcher ssh, or --hosts localhost,localhost for two nodes here",
                )
        return found

    def launch(self, request: LaunchRequest) -> LaunchExit:
        port = rendezvous_port(request.port)
        cores = pinned_cores(request.world_size, request.cores_per_rank)
        starts = [
            partial(
                start_logged,
                request.command(rank),
                {
                    **LOOPBACK_VARIABLES,
                    **request.rank_variables(rank, LOOPBACK, port),
                    "PACELINE_WATCH_STDIN": "1",
                },
                log,
                cores[rank],
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


def is_this_machine(host: str) -> bool:
    if host in ("localhost", platform.node()):
        return True
    try:
        address = socket.gethostbyname(host)
    except OSError:
        return False
    return is_loopback(address) or address in interface_addresses().values()


def start_logged(
    command: Sequence[str], variables: dict[str, str], log: Path, cores: Collection[int] = ()
) -> Process:
    """Start a command in its own session, with its output in ``log``."""
    with log.open("wb") as output:
        return start_process(command, variables, output, cores, stdin=subprocess.PIPE)


def pinned_cores(world_size: int, cores_per_rank: int | None = None) -> list[tuple[int, ...]]:
    """Return the cores of each rank: ``cores_per_rank``, or its share of all when None.

    Ranks share cores only where there are too few. The tuples are empty where pinning is not
    supported.
    """
    usable = usable_cores()
    if not usable:
        return [()] * world_size
    each = min(cores_per_rank or max(1, len(usable) // world_size), len(usable))
    return [
        tuple(usable[(rank * each + core) % len(usable)] for core in range(each))
        for rank in range(world_size)
    ]
