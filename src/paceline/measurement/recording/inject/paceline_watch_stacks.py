"""Samples of the line that the training thread executes: they name what it waits for.

One thread reads the frames of the training thread about ten times a second, which takes about
0.1 % of a core. A sample in a blocked state (``S`` or ``D`` of proc(5)) is a wait.
"""

from __future__ import annotations

import os
import re
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
_GENERATOR = 0x20
"""CO_GENERATOR of a code object."""
_LOADING = re.compile(
    r"__next__$|__getitem__$|_?collate"
    r"|_?(get|next|load|make|read|fetch|prepare|draw|sample|build|create|generate)_\w*"
    r"(batch|data|input|example|sample|token|sequence|text|image)"
    r"|_?(augment|preprocess|tokeni[sz]e|transform(?!er)|normali[sz]e|decode(?!r))"
)
"""Names of functions that prepare input without a data loader."""


class StackSampler(threading.Thread):
    """Samples the thread that creates it until `stop`: (moment, blocked, line, loads).

    ``loop`` are the functions that are active when a step ends: those that they call are not the
    whole training loop.
    """

    def __init__(self) -> None:
        super().__init__(name="paceline-stacks", daemon=True)
        self.watched = threading.get_ident()
        self.native = threading.get_native_id()
        self.samples: list[tuple[float, bool, str, bool]] = []
        self.loop: set[Any] | None = None
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
                    self.samples.append((moment, blocked, *describe(frame, self.loop or ())))
        except OSError:
            return
        finally:
            os.close(state)

    def stop(self) -> None:
        self.ended.set()

    def see_loop(self) -> None:
        """Remember the active functions; called at the end of a step."""
        self.loop, frame = set(), sys._getframe(1)
        while frame is not None:
            self.loop.add(frame.f_code)
            frame = frame.f_back  # type: ignore[assignment]

    def take(self) -> list[tuple[float, bool, str, bool]]:
        """Samples since the last call."""
        taken, self.samples = self.samples, []
        return taken


def describe(frame: Any, loop: Any) -> tuple[str, bool]:
    """Function and line of the script, with the library function that it calls; whether it loads.

    For example ``load at train.py:42, save in serialization.py``. Input is loaded by a generator of
    the script, an iterator, or a function of such a name that returns within the ``loop``.
    """
    inner, line, loads, depth = "", "", False, 0
    while frame is not None and depth < DEEPEST:
        code = frame.f_code
        known = _names.get(code)
        if known is None:
            known = _names[code] = name_of(code)
        is_script, name, loading = known
        if is_script and not line:
            line = f"{name}:{frame.f_lineno} ({code.co_name})"
            line = f"{line}, {inner}" if inner else line
        inner = name or inner
        loads = loads or (loading and code not in loop)
        frame, depth = frame.f_back, depth + 1
    return line or inner, loads


_names: dict[Any, tuple[bool, str, bool]] = {}


def name_of(code: Any) -> tuple[bool, str, bool]:
    """Whether a function is of the script, its name, and whether it can load input.

    The name is empty for a function of this package.
    """
    path = code.co_filename
    if any(part in path for part in _OWN):
        return False, "", False
    base = os.path.basename(path)
    if any(part in path for part in _LIBRARIES) or path.startswith("<"):
        return False, f"{code.co_name} in {base}", False
    yields = bool(code.co_flags & _GENERATOR) and not code.co_name.startswith("<")
    return True, base, yields or _LOADING.match(code.co_name) is not None
