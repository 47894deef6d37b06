"""Cores of a worker's threads: which they may use, and how long they were ready and had none.

Standard library only. Linux tells it of each thread; elsewhere it is not known.
"""

import math
import os
from contextlib import suppress

MESSAGE_THREADS = "gloo"
"""Part of the name of threads that carry messages between processes."""


def thread_cores() -> list[int]:
    """Cores that any thread of this process may use; a pin may have been lifted since its start."""
    found: set[int] = set()
    with suppress(OSError):
        for thread in os.listdir("/proc/self/task"):
            with suppress(ProcessLookupError):
                found |= os.sched_getaffinity(int(thread))
    return sorted(found)


def run_delay(thread: str = "thread-self") -> float:
    """Seconds that a thread was ready to run and had no core; NaN where the system is silent."""
    try:
        with open(f"/proc/{thread}/schedstat", "rb") as file:
            _, waited, turns = map(int, file.read().split())
    except (OSError, ValueError):
        return math.nan
    return waited / 1e9 if turns else math.nan


def message_delays() -> dict[str, float]:
    """The same of each thread that carries messages between processes, by its number."""
    found = {}
    try:
        for thread in os.listdir("/proc/self/task"):
            with open(f"/proc/self/task/{thread}/comm", encoding="utf-8") as file:
                if MESSAGE_THREADS in file.read():
                    found[thread] = run_delay(f"self/task/{thread}")
    except (OSError, ValueError):
        pass
    return {thread: waited for thread, waited in found.items() if not math.isnan(waited)}
