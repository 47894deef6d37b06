"""Samples of the line that the training thread executes: they name what it waits for.

One thread reads the frames of the training thread about ten times a second, which takes about
0.1 % of a core. A sample in a blocked state (``S`` or ``D`` of proc(5)) is a wait.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from typing import Any

PERIOD_SECONDS = 0.097
"""Not a divisor of usual periods, so that samples do not stay in phase with steps."""
MOST_SAMPLES = 2000
DEEPEST = 60
_LIBRARIES = (
    f"{os.sep}site-packages{os.sep}",
    f"{os.sep}dist-packages{os.sep}",
    f"lib{os.sep}python",
)
_OWN = ("paceline_watch", "thread_states")


class StackSampler(threading.Thread):
    """Samples the thread that creates it until `stop`; ``samples`` are (moment, blocked, line)."""

    def __init__(self) -> None:
        super().__init__(name="paceline-stacks", daemon=True)
        self.watched = threading.get_ident()
        self.native = threading.get_native_id()
        self.samples: list[tuple[float, bool, str]] = []
        self.ended = threading.Event()

    def run(self) -> None:
        try:
            state = os.open(f"/proc/self/task/{self.native}/stat", os.O_RDONLY)
        except OSError:
            return
        try:
            while not self.ended.wait(PERIOD_SECONDS):
                # Read before the frames: taking them can need the lock that the thread holds.
                blocked = os.pread(state, 512, 0).rpartition(b")")[2][1:2] in (b"S", b"D")
                moment = time.perf_counter()
                frame = sys._current_frames().get(self.watched)
                if frame is not None and len(self.samples) < MOST_SAMPLES:
                    self.samples.append((moment, blocked, describe(frame)))
        except OSError:
            return
        finally:
            os.close(state)

    def stop(self) -> None:
        self.ended.set()

    def take(self) -> list[tuple[float, bool, str]]:
        """Samples since the last call."""
        taken, self.samples = self.samples, []
        return taken


def describe(frame: Any) -> str:
    """Function and line of the script, and the library function that it calls.

    For example ``load at train.py:42, save in serialization.py``.
    """
    inner, depth = "", 0
    while frame is not None and depth < DEEPEST:
        code = frame.f_code
        known = _names.get(code)
        if known is None:
            known = _names[code] = name_of(code)
        is_script, name = known
        if is_script:
            line = f"{name}:{frame.f_lineno} ({code.co_name})"
            return f"{line}, {inner}" if inner else line
        inner = name or inner
        frame, depth = frame.f_back, depth + 1
    return inner


_names: dict[Any, tuple[bool, str]] = {}


def name_of(code: Any) -> tuple[bool, str]:
    """Whether a function is of the script, and its name; empty for a function of this package."""
    path = code.co_filename
    if any(part in path for part in _OWN):
        return False, ""
    base = os.path.basename(path)
    if any(part in path for part in _LIBRARIES) or path.startswith("<"):
        return False, f"{code.co_name} in {base}"
    return True, base
