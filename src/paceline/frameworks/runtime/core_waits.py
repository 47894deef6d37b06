"""CPU affinity and CPU contention (runnable, but without a core) of a worker's threads.

Standard library only. Linux reports both per thread; on other systems they are unknown.
"""

import math
import os
from contextlib import suppress

MESSAGE_THREADS = "gloo"
"""Part of the name of communication threads."""


def thread_cores() -> list[int]:
    """Return the affinity of all threads of this process; a framework may have changed it."""
    found: set[int] = set()
    with suppress(OSError):
        for thread in os.listdir("/proc/self/task"):
            with suppress(ProcessLookupError):
                found |= os.sched_getaffinity(int(thread))
    return sorted(found)


def run_delay(thread: str = "thread-self") -> float:
    """Return the seconds that a thread was runnable without a core; NaN if unknown."""
    try:
        with open(f"/proc/{thread}/schedstat", "rb") as file:
            _, waited, turns = map(int, file.read().split())
    except (OSError, ValueError):
        return math.nan
    return waited / 1e9 if turns else math.nan


def message_delays() -> dict[str, float]:
    """Return the same for each communication thread, by its number."""
    found = {}
    try:
        for thread in os.listdir("/proc/self/task"):
            with open(f"/proc/self/task/{thread}/comm", encoding="utf-8") as file:
                if MESSAGE_THREADS in file.read():
                    found[thread] = run_delay(f"self/task/{thread}")
    except (OSError, ValueError):
        pass
    return {thread: waited for thread, waited in found.items() if not math.isnan(waited)}
