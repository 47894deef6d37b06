"""Connections of processes that nobody answers: how a rank that waits tells whom it waits for.

Linux and the standard library only; the kernel's own tables are read, nothing is sent.
"""

import ipaddress
import os
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from paceline.launch.onhost.guard import descendants

TABLES = ("tcp", "tcp6")
PROC = Path("/proc")
ENOUGH_TRIES = {"01": 4, "02": 1}
"""Times that something was sent again before it counts as unanswered, by the state of a
connection: one that is open (01), or that is being opened (02)."""


class Lookout:
    """Looks at ranks now and then, a few times in all: the first when a tenth of the time is over.

    Whoever ends a launch may end its ranks before anyone can look at them.
    """

    def __init__(self, timeout_seconds: float) -> None:
        self.pause = timeout_seconds / 20
        self.next = time.monotonic() + 2 * self.pause
        self.seen: dict[int, list[str]] = {}

    def look(self, processes: Mapping[int, int], now: bool = False) -> None:
        """Look at processes by rank when it is time, or ``now``, unless they have ended."""
        if now or time.monotonic() >= self.next:
            alive = {rank: one for rank, one in processes.items() if descendants(one)}
            self.seen |= {rank: unanswered(one) for rank, one in alive.items()}
            self.next = time.monotonic() + self.pause


def unanswered(process: int) -> list[str]:
    """``address:port`` of each peer that does not answer a process or what it started."""
    if sys.platform != "linux":
        return []
    found: set[str] = set()
    for one in (process, *descendants(process)):
        own = set(_sockets(one))
        if own:
            found |= {peer for socket, peer in _silent(one) if socket in own}
    return sorted(found)


def _sockets(process: int) -> Iterator[str]:
    """The sockets that a process has open, by their number."""
    with suppress(OSError):
        for entry in os.scandir(PROC / str(process) / "fd"):
            with suppress(OSError):
                kind, _, number = str(Path(entry.path).readlink()).partition(":")
                if kind == "socket":
                    yield number.strip("[]")


def _silent(process: int) -> Iterator[tuple[str, str]]:
    """Sockets of the process's network whose peer does not answer, each with that peer."""
    for table in TABLES:
        try:
            rows = (PROC / str(process) / "net" / table).read_text(encoding="ascii").splitlines()
        except OSError:
            continue
        for row in rows[1:]:
            _, _, peer, state, _, _, tries, _, _, socket, *_ = row.split()
            if int(tries, 16) >= ENOUGH_TRIES.get(state, sys.maxsize):
                yield socket, _address(peer)


def _address(told: str) -> str:
    """``address:port`` as people write it; the kernel has words of 32 bits in its own order."""
    digits, _, port = told.partition(":")
    words = (int(digits[at : at + 8], 16) for at in range(0, len(digits), 8))
    address = ipaddress.ip_address(b"".join(word.to_bytes(4, sys.byteorder) for word in words))
    plain = getattr(address, "ipv4_mapped", None) or address
    return f"{plain}:{int(port, 16)}" if plain.version == 4 else f"[{plain}]:{int(port, 16)}"
