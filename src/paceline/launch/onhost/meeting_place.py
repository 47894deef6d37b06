"""Where the ranks of a launch meet, who of them shares a machine, and what each is told of it."""

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

from paceline.launch.onhost import roll_call
from paceline.launch.onhost.addresses import (
    LOOPBACK,
    address_towards,
    free_port,
    interface_of,
    own_address,
)
from paceline.launch.onhost.placement import Placement
from paceline.launch.onhost.roll_call import Attendance, Clock

POLL_SECONDS = 0.05
SHARE_OF_TIME = 0.75
"""Of the time of a launch that ranks may take to meet; in the rest they tell who is missing."""
BOOT = Path("/proc/sys/kernel/random/boot_id")
INTERFACE_VARIABLES = ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME", "HOROVOD_GLOO_IFACE")
"""Where libraries are told the interface to talk over; one that is set already stays."""


class MeetingError(Exception):
    """Rank 0 did not say where it is."""


@dataclass(frozen=True)
class Met:
    """What an agent knows once all have met.

    Ranks meet at ``address`` and ``port``, a port of rank 0's machine; ``own_address`` is ours.
    ``neighbours`` are the ranks of this machine in order, whatever nodes they belong to.
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
        """What a rank finds in its environment."""
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
        """The cores of a rank: ``wanted``, or its share of those that this process may use.

        Ranks of a machine have cores of their own where there are enough, else they take turns.
        """
        usable = sorted(os.sched_getaffinity(0)) if sys.platform == "linux" else []
        if not usable:
            return []
        each = min(wanted or max(1, len(usable) // len(self.neighbours)), len(usable))
        first = self.neighbours.index(rank) * each
        return sorted({usable[(first + core) % len(usable)] for core in range(each)})

    def facts(self, rank: int) -> dict[str, Any]:
        """What is kept of where a rank ran."""
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
    """What this machine is called: by the user, by Slurm, else by itself."""
    named = dict(enumerate(launch["hosts"])).get(mine.ranks[0] // launch["processes"])
    told = os.environ.get("PACELINE_HOST") or os.environ.get("SLURMD_NODENAME")
    return told or named or platform.node()


def meet(
    directory: Path, launch: dict[str, Any], mine: Placement, asked: Callable[[], bool]
) -> Met:
    """Agree with the agents of all other nodes on a place; a launch on one node needs no call."""
    nodes, processes = launch["nodes"], launch["processes"]
    host = host_name(launch, mine)
    own = {"ranks": list(mine.ranks), "host": host, "boot": _boot()}
    holds = mine.ranks[0] == 0
    if nodes == 1 and launch["port"] is not None:
        everyone = tuple(range(processes))
        return Met(1, processes, mine, LOOPBACK, launch["port"], LOOPBACK, host, everyone)
    world, token = nodes * processes, launch["token"]
    patience = min(launch["patience_seconds"], SHARE_OF_TIME * launch["timeout_seconds"])
    place = (
        _open(directory, launch, mine) if holds else _told(directory, launch, mine, patience, asked)
    )
    call, clock = (place["address"], place["roll_port"]), Clock()
    if holds:
        present = roll_call.hold(call, own, world, token, patience, asked)
        ours = place["address"]
        _place_path(directory, mine).unlink(missing_ok=True)
    else:
        present, clock = roll_call.attend(call, own, token, patience)
        ours = address_towards(place["address"])
    neighbours = tuple(
        rank for one in present if one["boot"] == own["boot"] for rank in one["ranks"]
    )
    return Met(
        nodes, processes, mine, place["address"], place["port"], ours, host, neighbours, clock
    )


def _open(directory: Path, launch: dict[str, Any], mine: Placement) -> Attendance:
    """The place as rank 0 chooses it, left in the directory for the others."""
    address = launch["address"] or (
        LOOPBACK if launch["nodes"] == 1 else own_address(launch["interface"])
    )
    address = socket.gethostbyname(address)
    place = {
        "address": address,
        "port": launch["port"] or free_port(address),
        "roll_port": launch["roll_port"] or free_port(address),
    }
    path = _place_path(directory, mine)
    part = path.with_suffix(".part")
    part.write_text(json.dumps(place), encoding="utf-8")
    part.replace(path)
    return place


def _told(
    directory: Path,
    launch: dict[str, Any],
    mine: Placement,
    patience_seconds: float,
    asked: Callable[[], bool],
) -> Attendance:
    """The place that the launch fixes, else what rank 0 leaves in the directory."""
    if launch["address"] and launch["port"] and launch["roll_port"]:
        return {name: launch[name] for name in ("address", "port", "roll_port")}
    end, path = time.monotonic() + patience_seconds, _place_path(directory, mine)
    while not path.exists():
        if time.monotonic() > end or asked():
            raise MeetingError(
                f"rank 0 did not begin within {patience_seconds:.0f} s: it left no {path.name} "
                f"in {directory}"
            )
        time.sleep(POLL_SECONDS)
    place: Attendance = json.loads(path.read_text(encoding="utf-8"))
    return place


def _place_path(directory: Path, mine: Placement) -> Path:
    return directory / f"meeting{mine.attempt and '-'}{mine.attempt.replace('/', '_')}.json"


def _boot() -> str:
    """What tells this start of this machine from all others."""
    try:
        return BOOT.read_text(encoding="ascii").strip()
    except OSError:
        return platform.node()
