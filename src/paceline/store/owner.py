"""Which process a running launch belongs to, and whether that process still lives."""

import platform

import psutil


def this_process() -> str:
    """An owner mark that no other process has: host, process id and its start time."""
    process = psutil.Process()
    return f"{platform.node()}:{process.pid}:{process.create_time():.3f}"


def owner_is_alive(owner: str) -> bool:
    """Whether the owner still runs; a process of another host is given the benefit of the doubt."""
    host, pid, created = owner.rsplit(":", 2)
    if host != platform.node():
        return True
    try:
        process = psutil.Process(int(pid))
        same = f"{process.create_time():.3f}" == created
        return same and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
