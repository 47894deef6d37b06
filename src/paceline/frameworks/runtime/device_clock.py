"""The clock of an emulated device: its work is slept, to the moments when it would have ended.

Standard library only. A device works through what its host hands it in order. Deadlines are
absolute, so that what a host spends between two layers costs nothing, as on a real device, which
is handed work ahead of time. Where the host itself waits for messages before a layer, the device
waits too.
"""

import ctypes
import os
import sys
import time
from contextlib import suppress

PR_SET_TIMERSLACK = 29
SHORTEST_SLEEP_SECONDS = 200e-6
"""A host does not sleep for less: the next, longer sleep ends at the right moment all the same."""
HOST_SECONDS = 1e-3
"""A host that comes later than this to a layer waited for something; else it was only slow."""


class DeviceClock:
    """When an emulated device is done with what it was given, by the host's clock in seconds.

    With ``host_waits`` the host waits for messages between layers, and the device with it.
    """

    def __init__(self, host_waits: bool = False) -> None:
        self.host_waits = host_waits
        self.free = 0.0
        self.late_seconds: list[float] = []

    def begin(self) -> None:
        """A step begins: the device is idle from now on."""
        self.free = time.perf_counter()

    def work(self, seconds: float) -> None:
        """Return when the device has worked for ``seconds`` more, or nearly so."""
        if self.host_waits:
            now = time.perf_counter()
            if now - self.free > HOST_SECONDS:
                self.free = now
        self.free += seconds
        self._sleep(SHORTEST_SLEEP_SECONDS)

    def catch_up(self) -> None:
        """Return when the device has done all that it was given: what it made can be sent."""
        self._sleep(0.0)

    def waited(self) -> None:
        """The device waited until now for a message."""
        self.free = max(self.free, time.perf_counter())

    def finish(self, seconds: float) -> None:
        """Whatever the step waited for has come: work for ``seconds`` more and end the step."""
        now = time.perf_counter()
        self.free = max(self.free, now) + seconds
        self._sleep(0.0)
        self.late_seconds.append(max(0.0, time.perf_counter() - self.free))

    def _sleep(self, shortest: float) -> None:
        rest = self.free - time.perf_counter()
        if rest > shortest:
            time.sleep(rest)


def run_ahead_of_others() -> str:
    """Ask for a processor as soon as a sleep ends, whatever else runs; what was got, in words.

    Only for ranks that sleep and communicate: one that computes would starve the machine.
    """
    if sys.platform != "linux":
        return "usual"
    ctypes.CDLL(None).prctl(PR_SET_TIMERSLACK, 1)
    with suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
        return "real-time"
    return "usual"
