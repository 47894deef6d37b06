"""Interrupts that are noted when they come and raised where nothing can be left behind."""

import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Protocol

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
PASSED_ON = (signal.SIGUSR1, signal.SIGUSR2)


class SignalledInterrupt(KeyboardInterrupt):
    """A signal asked this process to end; ``number`` says which."""

    def __init__(self, number: int) -> None:
        keyboard = number == signal.SIGINT
        source = "from the keyboard" if keyboard else f"by {signal.Signals(number).name}"
        super().__init__(f"interrupted {source}")
        self.number = number


class Interrupts:
    """The last signal that asked this process to end, if one came."""

    def __init__(self) -> None:
        self.noted: int | None = None

    def note(self, number: int, frame: FrameType | None) -> None:
        """Handle a signal: remember it."""
        self.noted = number

    def check(self) -> None:
        """Raise `SignalledInterrupt` if a signal came."""
        if self.noted is not None:
            raise SignalledInterrupt(self.noted)


def raise_when_asked_to_end() -> None:
    """Make SIGTERM and SIGHUP raise where they come, as SIGINT does; ignored ones stay ignored."""

    def raised(number: int, frame: FrameType | None) -> None:
        raise SignalledInterrupt(number)

    for number in ENDING:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, raised)


class Signallable(Protocol):
    """A process that a signal can be sent to."""

    def send_signal(self, sig: int) -> None:
        """Send it."""


@contextmanager
def passed_on(receivers: Sequence[Signallable] | None) -> Iterator[None]:
    """Send on the signals that mean something to a training script only, such as Slurm's SIGUSR1.

    ``receivers`` may still grow. Nothing is caught where they are None.
    """
    if receivers is None or threading.current_thread() is not threading.main_thread():
        yield
        return

    def send(number: int, frame: FrameType | None) -> None:
        for receiver in receivers:
            receiver.send_signal(number)

    previous = {number: signal.signal(number, send) for number in PASSED_ON}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


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
