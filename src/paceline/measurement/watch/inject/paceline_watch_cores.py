"""How long threads of this process were ready to run and had no core, by the system's books.

Linux counts it for each thread; elsewhere it is not known. The standard library only.
"""

from __future__ import annotations

import os

MESSAGE_THREADS = "gloo"
"""Part of the name of threads that carry messages between processes."""


def run_delay(thread: str = "thread-self") -> float | None:
    """Seconds that a thread was ready to run and had no core; None where the system is silent."""
    try:
        with open(f"/proc/{thread}/schedstat", "rb") as file:
            _, waited, turns = map(int, file.read().split())
    except (OSError, ValueError):
        return None
    return waited / 1e9 if turns else None


def delay_between(before: float | None, after: float | None) -> float | None:
    """What was added to a thread's delay; None where it is not known."""
    return None if before is None or after is None else max(0.0, after - before)


def message_delays() -> dict[str, float]:
    """The delay of each thread that carries messages between processes, by its number."""
    found: dict[str, float] = {}
    try:
        for thread in os.listdir("/proc/self/task"):
            with open(f"/proc/self/task/{thread}/comm", encoding="utf-8") as file:
                delay = run_delay(f"self/task/{thread}") if MESSAGE_THREADS in file.read() else None
            if delay is not None:
                found[thread] = delay
    except (OSError, ValueError):
        pass
    return found


def longest_delay(before: dict[str, float], after: dict[str, float]) -> float | None:
    """The most that any thread of both moments waited in between; None where there is none."""
    waited = [after[thread] - before[thread] for thread in before if thread in after]
    return max(0.0, *waited) if waited else None
