"""The clock of an emulated device: the host sleeps until the device would have finished.

Standard library only. A device processes its work in order. Deadlines are
absolute, so that host time between two layers costs nothing, as on a real device with a queue
of work. Where the host waits for messages before a layer, the device
waits too.
"""

import ctypes
import os
import sys
import time
from contextlib import suppress

# linux/prctl.h; the default slack of 50 us would make each sleep late by that much.
PR_SET_TIMERSLACK = 29
SHORTEST_SLEEP_SECONDS = 200e-6
"""Shortest sleep; a skipped one is made up by the next, since deadlines are absolute."""
HOST_SECONDS = 1e-3
"""A host that is later than this at a layer has waited for a message."""


class DeviceClock:
    """The time at which an emulated device finishes its queue, by the host's clock in seconds.

    With ``host_waits`` the host waits for messages between layers, and the device with it.
    """

    def __init__(self, host_waits: bool = False) -> None:
        self.host_waits = host_waits
        self.free = 0.0
        self.late_seconds: list[float] = []

    def begin(self) -> None:
        """Start a step: the device is idle."""
        self.free = time.perf_counter()

    def work(self, seconds: float) -> None:
        """Queue ``seconds`` of work and return about when the device has finished it."""
        if self.host_waits:
            now = time.perf_counter()
            if now - self.free > HOST_SECONDS:
                self.free = now
        self.free += seconds
        self._sleep(SHORTEST_SLEEP_SECONDS)

    def catch_up(self) -> None:
        """Return when the device has finished its queue, so that results can be sent."""
        self._sleep(0.0)

    def waited(self) -> None:
        """Record that the device waited until now for a message."""
        self.free = max(self.free, time.perf_counter())

    def finish(self, seconds: float) -> None:
        """End the step with ``seconds`` of work, after all messages have arrived."""
        now = time.perf_counter()
        self.free = max(self.free, now) + seconds
        self._sleep(0.0)
        self.late_seconds.append(max(0.0, time.perf_counter() - self.free))

    def _sleep(self, shortest: float) -> None:
        rest = self.free - time.perf_counter()
        if rest > shortest:
            time.sleep(rest)


def run_ahead_of_others() -> str:
    """Request real-time scheduling; return ``real-time`` or ``usual``.

    Only for ranks that sleep and communicate: a computing rank would starve other processes.
    """
    if sys.platform != "linux":
        return "usual"
    ctypes.CDLL(None).prctl(PR_SET_TIMERSLACK, 1)
    with suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
        return "real-time"
    return "usual"
