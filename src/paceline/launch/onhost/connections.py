"""TCP connections of ranks whose peer does not answer: they show which host a rank waits for.

Linux and the standard library only. Reads the tables of the kernel and sends nothing.
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
"""Retransmissions after which a connection counts as unanswered, by its state:
established (01) or opening (02)."""


class ConnectionMonitor:
    """Checks the connections of ranks from a tenth of the timeout on, every twentieth of it.

    Whatever ends a launch may end its ranks before a last check.
    """

    def __init__(self, timeout_seconds: float) -> None:
        self.pause = timeout_seconds / 20
        self.next = time.monotonic() + 2 * self.pause
        self.seen: dict[int, list[str]] = {}

    def check(self, processes: Mapping[int, int], now: bool = False) -> None:
        """Check the processes of ranks when due, or ``now``, unless they have ended."""
        if now or time.monotonic() >= self.next:
            alive = {rank: pid for rank, pid in processes.items() if descendants(pid)}
            self.seen |= {rank: unanswered(pid) for rank, pid in alive.items()}
            self.next = time.monotonic() + self.pause


def unanswered(process: int) -> list[str]:
    """Return ``address:port`` of each peer that does not answer a process or its children."""
    if sys.platform != "linux":
        return []
    found: set[str] = set()
    for pid in (process, *descendants(process)):
        own = set(_sockets(pid))
        if own:
            found |= {peer for socket, peer in _silent(pid) if socket in own}
    return sorted(found)


def _sockets(process: int) -> Iterator[str]:
    """Yield the inode of each open socket of a process."""
    with suppress(OSError):
        for entry in os.scandir(PROC / str(process) / "fd"):
            with suppress(OSError):
                kind, _, number = str(Path(entry.path).readlink()).partition(":")
                if kind == "socket":
                    yield number.strip("[]")


def _silent(process: int) -> Iterator[tuple[str, str]]:
    """Yield each socket of a process's network namespace whose peer does not answer."""
    for table in TABLES:
        try:
            rows = (PROC / str(process) / "net" / table).read_text(encoding="ascii").splitlines()
        except OSError:
            continue
        for row in rows[1:]:
            _, _, peer, state, _, _, tries, _, _, socket, *_ = row.split()
            if int(tries, 16) >= ENOUGH_TRIES.get(state, sys.maxsize):
                yield socket, _address(peer)


def _address(text: str) -> str:
    """Return ``address:port``; the kernel prints 32-bit words in host byte order."""
    digits, _, port = text.partition(":")
    words = (int(digits[at : at + 8], 16) for at in range(0, len(digits), 8))
    address = ipaddress.ip_address(b"".join(word.to_bytes(4, sys.byteorder) for word in words))
    plain = getattr(address, "ipv4_mapped", None) or address
    return f"{plain}:{int(port, 16)}" if plain.version == 4 else f"[{plain}]:{int(port, 16)}"
