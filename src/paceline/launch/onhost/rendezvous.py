"""The rendezvous of a launch: agents agree on an address and derive the environment of ranks."""

import json
import os
import platform
import socket
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from paceline.launch.onhost.addresses import (
    LOOPBACK,
    address_towards,
    free_port,
    interface_of,
    own_address,
)
from paceline.launch.onhost.barrier import Clock, join_barrier, serve_barrier
from paceline.launch.onhost.placement import Placement

POLL_SECONDS = 0.05
RENDEZVOUS_SHARE = 0.75
"""Share of the launch timeout that the rendezvous may take; the rest is for reporting failures."""
BOOT = Path("/proc/sys/kernel/random/boot_id")
INTERFACE_VARIABLES = ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME", "HOROVOD_GLOO_IFACE")
"""Variables that set the interface of Gloo, NCCL and Horovod; values of the user are kept."""


class RendezvousError(Exception):
    """Rank 0 did not publish its address."""


@dataclass(frozen=True)
class Rendezvous:
    """The result of a rendezvous for one agent.

    Ranks connect to ``address`` and ``port`` on the machine of rank 0; ``own_address`` belongs to
    this machine. ``neighbours`` are the ranks of this machine in order, of whichever nodes.
    """

    nodes: int
    processes: int
    placement: Placement
    address: str
    port: int
    own_address: str
    host: str
    neighbours: tuple[int, ...]
    clock: Clock = field(default_factory=Clock)

    def variables(self, rank: int) -> dict[str, str]:
        interface = interface_of(self.own_address)
        named = {name: interface for name in INTERFACE_VARIABLES if name not in os.environ}
        return {
            **(named if interface else {}),
            "RANK": str(rank),
            "LOCAL_RANK": str(rank % self.processes),
            "WORLD_SIZE": str(self.nodes * self.processes),
            "LOCAL_WORLD_SIZE": str(self.processes),
            "MASTER_ADDR": self.address,
            "MASTER_PORT": str(self.port),
        }

    def cores(self, rank: int, wanted: int | None) -> list[int]:
        """Return the cores of a rank: ``wanted``, or its share of the usable cores.

        Ranks of a machine share cores only where there are too few.
        """
        usable = sorted(os.sched_getaffinity(0)) if sys.platform == "linux" else []
        if not usable:
            return []
        each = min(wanted or max(1, len(usable) // len(self.neighbours)), len(usable))
        first = self.neighbours.index(rank) * each
        return sorted({usable[(first + core) % len(usable)] for core in range(each)})

    def facts(self, rank: int) -> dict[str, Any]:
        return {
            "rank": rank,
            "host": self.host,
            "address": self.own_address,
            "interface": interface_of(self.own_address),
            "engine": self.placement.engine,
            "attempt": self.placement.attempt,
            "clock_offset_seconds": self.clock.offset_seconds,
            "clock_error_seconds": self.clock.error_seconds,
        }


def host_name(launch: dict[str, Any], mine: Placement) -> str:
    """Return the name of this machine: from the user, else from Slurm, else its host name."""
    named = dict(enumerate(launch["hosts"])).get(mine.ranks[0] // launch["processes"])
    variable = os.environ.get("PACELINE_HOST") or os.environ.get("SLURMD_NODENAME")
    return variable or named or platform.node()


def join_rendezvous(
    directory: Path, launch: dict[str, Any], mine: Placement, should_stop: Callable[[], bool]
) -> Rendezvous:
    """Agree with the agents of all other nodes on an address; one node needs no barrier."""
    nodes, processes = launch["nodes"], launch["processes"]
    host = host_name(launch, mine)
    own = {"ranks": list(mine.ranks), "host": host, "boot": _boot_id()}
    is_rank_0 = mine.ranks[0] == 0
    if nodes == 1 and launch["port"] is not None:
        everyone = tuple(range(processes))
        return Rendezvous(1, processes, mine, LOOPBACK, launch["port"], LOOPBACK, host, everyone)
    world, token = nodes * processes, launch["token"]
    timeout = min(launch["patience_seconds"], RENDEZVOUS_SHARE * launch["timeout_seconds"])
    endpoint = (
        _publish_endpoint(directory, launch, mine)
        if is_rank_0
        else _read_endpoint(directory, launch, mine, timeout, should_stop)
    )
    barrier, clock = (endpoint["address"], endpoint["roll_port"]), Clock()
    if is_rank_0:
        present = serve_barrier(barrier, own, world, token, timeout, should_stop)
        own_ip = endpoint["address"]
        _endpoint_path(directory, mine).unlink(missing_ok=True)
    else:
        present, clock = join_barrier(barrier, own, token, timeout)
        own_ip = address_towards(endpoint["address"])
    # Nodes with the same boot id are one machine, as in a lab: their ranks share its cores.
    neighbours = tuple(
        rank for agent in present if agent["boot"] == own["boot"] for rank in agent["ranks"]
    )
    return Rendezvous(
        nodes,
        processes,
        mine,
        endpoint["address"],
        endpoint["port"],
        own_ip,
        host,
        neighbours,
        clock,
    )


def _publish_endpoint(directory: Path, launch: dict[str, Any], mine: Placement) -> dict[str, Any]:
    """Choose the address and ports on rank 0 and write them to the launch directory."""
    address = launch["address"] or (
        LOOPBACK if launch["nodes"] == 1 else own_address(launch["interface"])
    )
    address = socket.gethostbyname(address)
    endpoint = {
        "address": address,
        "port": launch["port"] or free_port(address),
        "roll_port": launch["roll_port"] or free_port(address),
    }
    path = _endpoint_path(directory, mine)
    # Renamed when complete: agents of other nodes poll for this file.
    part = path.with_suffix(".part")
    part.write_text(json.dumps(endpoint), encoding="utf-8")
    part.replace(path)
    return endpoint


def _read_endpoint(
    directory: Path,
    launch: dict[str, Any],
    mine: Placement,
    timeout_seconds: float,
    should_stop: Callable[[], bool],
) -> dict[str, Any]:
    """Return the endpoint of ``launch.json``, else the one that rank 0 publishes."""
    if launch["address"] and launch["port"] and launch["roll_port"]:
        return {name: launch[name] for name in ("address", "port", "roll_port")}
    end, path = time.monotonic() + timeout_seconds, _endpoint_path(directory, mine)
    while not path.exists():
        if time.monotonic() > end or should_stop():
            raise RendezvousError(
                f"rank 0 did not start within {timeout_seconds:.0f} s: {path} does not exist"
            )
        time.sleep(POLL_SECONDS)
    endpoint: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return endpoint


def _endpoint_path(directory: Path, mine: Placement) -> Path:
    return directory / f"meeting{mine.attempt and '-'}{mine.attempt.replace('/', '_')}.json"


def _boot_id() -> str:
    """Return an identifier of this boot of this machine."""
    try:
        return BOOT.read_text(encoding="ascii").strip()
    except OSError:
        return platform.node()
