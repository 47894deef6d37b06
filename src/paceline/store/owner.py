"""Which process a running launch belongs to, and whether that process still lives.

A process that runs launches holds a lock on a file beside the store as long as it lives. Whoever
can take the lock knows that the holder is gone: no clock, no host name, no number of a process is
asked, and it holds between containers that share the directory.
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
    """A file that this process holds until `release` or its end; ``words`` say who it is."""

    def __init__(self, path: Path, handle: int) -> None:
        self.path, self._handle = path, handle

    @classmethod
    def take(cls, path: Path) -> "LockedFile | None":
        """Hold ``path``, which is made; None if another process does."""
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        while True:
            handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(handle)
                return None
            except OSError:  # a file system without locks: nobody can be told apart
                return cls(path, handle)
            if _is_still(path, handle):
                os.truncate(handle, 0)
                os.write(handle, f"process {os.getpid()} on {platform.node()}".encode())
                return cls(path, handle)
            os.close(handle)  # it was released, and so removed, between opening and locking

    def release(self) -> None:
        """Give the file up and remove it."""
        with suppress(OSError):
            self.path.unlink()
        os.close(self._handle)


def holder(path: Path) -> str:
    """Who holds a file, in words."""
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
    """An owner mark that no other process has, and the lock that keeps it alive."""
    token = secrets.token_hex(8)
    held = LockedFile.take(directory / token)
    assert held is not None, "a name at random is nobody else's"
    return f"{LOCKED}{token}", held


def owner_is_alive(owner: str, directory: Path) -> bool:
    """Whether the owner still runs; where that cannot be known it gets the benefit of the doubt."""
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
    """Remove files whose holders were killed."""
    for path in list(directory.iterdir()) if directory.is_dir() else ():
        with suppress(OSError):
            held = LockedFile.take(path)
            if held is not None:
                held.release()


def _older_owner_is_alive(owner: str) -> bool:
    """Marks of version 0.1: host, process id and start time."""
    host, pid, created = ["", "", *owner.rsplit(":", 2)][-3:]
    if host != platform.node() or not pid.isdecimal():
        return bool(host)
    try:
        process = psutil.Process(int(pid))
        same = f"{process.create_time():.3f}" == created
        return same and process.status() != psutil.STATUS_ZOMBIE
    except (psutil.NoSuchProcess, OverflowError):
        return False
