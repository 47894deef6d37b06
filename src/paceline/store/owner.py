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
        return f"{psutil.Process(int(pid)).create_time():.3f}" == created
    except psutil.NoSuchProcess:
        return False
