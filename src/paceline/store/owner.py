"""Owner of a running launch, and whether it is alive.

A process that runs launches holds a lock on a file in the directory of the store for its lifetime.
A process that can take the lock knows that the holder is dead. This needs no clock, host name or
process id, and works between containers that share the directory.
"""

import fcntl
import os
import platform
import secrets
from contextlib import suppress
from pathlib import Path

import psutil

LOCKED = "lock:"


class LockedFile:
    """A file that this process locks until `release` or its end; it contains the holder's name."""

    def __init__(self, path: Path, handle: int) -> None:
        self.path, self._handle = path, handle

    @classmethod
    def take(cls, path: Path) -> "LockedFile | None":
        """Create and lock ``path``; None if another process holds it."""
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        while True:
            handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(handle)
                return None
            except OSError:  # a file system without locks: holders cannot be distinguished
                return cls(path, handle)
            if _is_still(path, handle):
                os.truncate(handle, 0)
                os.write(handle, f"process {os.getpid()} on {platform.node()}".encode())
                return cls(path, handle)
            os.close(handle)  # it was released, and so removed, between opening and locking

    def release(self) -> None:
        with suppress(OSError):
            self.path.unlink()
        os.close(self._handle)


def holder(path: Path) -> str:
    """Description of the process that holds a file."""
    try:
        return path.read_text(encoding="utf-8", errors="replace") or "another process"
    except OSError:
        return "another process"


def _is_still(path: Path, handle: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(handle))
    except FileNotFoundError:
        return False


def new_owner(directory: Path) -> tuple[str, LockedFile]:
    """A unique owner mark, and its lock."""
    token = secrets.token_hex(8)
    held = LockedFile.take(directory / token)
    assert held is not None, "a random name is unique"
    return f"{LOCKED}{token}", held


def owner_is_alive(owner: str, directory: Path) -> bool:
    """Whether the owner is alive; True if unknown."""
    if not owner.startswith(LOCKED):
        return _older_owner_is_alive(owner)
    path = directory / Path(owner.removeprefix(LOCKED)).name
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(handle)
    return False


def remove_dead_owners(directory: Path) -> None:
    """Remove lock files whose holders were killed."""
    for path in list(directory.iterdir()) if directory.is_dir() else ():
        with suppress(OSError):
            held = LockedFile.take(path)
            if held is not None:
                held.release()


def _older_owner_is_alive(owner: str) -> bool:
    """Check a mark of version 0.1: host, process id and start time."""
    host, pid, created = ["", "", *owner.rsplit(":", 2)][-3:]
    if host != platform.node() or not pid.isdecimal():
        return bool(host)
    try:
        process = psutil.Process(int(pid))
        same = f"{process.create_time():.3f}" == created
        return same and process.status() != psutil.STATUS_ZOMBIE
    except (psutil.NoSuchProcess, OverflowError):
        return False
