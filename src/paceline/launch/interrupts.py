"""Interrupts that are noted when they come and raised where nothing can be left behind."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupts:
    """The last signal that asked this process to end, if one came."""

    def __init__(self) -> None:
        self._noted: int | None = None

    def note(self, number: int, frame: FrameType | None) -> None:
        """Handle a signal: remember it."""
        self._noted = number

    def check(self) -> None:
        """Raise `KeyboardInterrupt` if a signal came."""
        if self._noted is not None:
            keyboard = self._noted == signal.SIGINT
            source = "from the keyboard" if keyboard else f"by {signal.Signals(self._noted).name}"
            raise KeyboardInterrupt(f"interrupted {source}")


@contextmanager
def held_interrupts() -> Iterator[Interrupts]:
    """Note signals that ask to end, for the code inside to `check`; at the end they are raised.

    Python's own handler raises between any two instructions: a child that was just started is
    then known to nobody, and a `subprocess.Popen` that was just polled keeps its lock and can
    never be waited for. Signals that are ignored (``nohup``, a script's background job) stay
    ignored. Outside the main thread no signal arrives, and nothing is held.
    """
    interrupts = Interrupts()
    if threading.current_thread() is not threading.main_thread():
        yield interrupts
        return
    held = [number for number in ENDING if signal.getsignal(number) is not signal.SIG_IGN]
    previous = {number: signal.signal(number, interrupts.note) for number in held}
    try:
        yield interrupts
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
    interrupts.check()
