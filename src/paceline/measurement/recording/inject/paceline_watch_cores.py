"""CPU contention: time that threads of this process were runnable without a core.

Linux counts it for each thread; it is unknown elsewhere. The standard library only.
"""

from __future__ import annotations

import os

MESSAGE_THREADS = "gloo"
"""Part of the name of communication threads."""


def run_delay(thread: str = "thread-self") -> float | None:
    """Seconds that a thread was runnable without a core; None if unknown."""
    try:
        with open(f"/proc/{thread}/schedstat", "rb") as file:
            _, waited, turns = map(int, file.read().split())
    except (OSError, ValueError):
        return None
    return waited / 1e9 if turns else None


def delay_between(before: float | None, after: float | None) -> float | None:
    """Increase of the delay of a thread; None if unknown."""
    return None if before is None or after is None else max(0.0, after - before)


def message_delays() -> dict[str, float]:
    """Delay of each communication thread, by its number."""
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
    """Largest increase of the delay of a thread between two samples; None without a thread."""
    waited = [after[thread] - before[thread] for thread in before if thread in after]
    return max(0.0, *waited) if waited else None
