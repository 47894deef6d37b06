"""Signals that end the process, deferred to points where no resource can leak."""

import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Protocol

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
PASSED_ON = (signal.SIGUSR1, signal.SIGUSR2)


class SignalledInterrupt(KeyboardInterrupt):
    """A signal requested the end of this process; ``number`` is the signal."""

    def __init__(self, number: int) -> None:
        keyboard = number == signal.SIGINT
        source = "from the keyboard" if keyboard else f"by {signal.Signals(number).name}"
        super().__init__(f"interrupted {source}")
        self.number = number


class Interrupts:
    """The last pending signal, if any."""

    def __init__(self) -> None:
        self.noted: int | None = None

    def note(self, number: int, frame: FrameType | None) -> None:
        self.noted = number

    def check(self) -> None:
        """Raise `SignalledInterrupt` if a signal is pending."""
        if self.noted is not None:
            raise SignalledInterrupt(self.noted)


def install_signal_handlers() -> None:
    """Make SIGTERM and SIGHUP raise an exception as SIGINT does; ignored signals stay ignored."""

    def raised(number: int, frame: FrameType | None) -> None:
        raise SignalledInterrupt(number)

    for number in ENDING:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, raised)


class Signallable(Protocol):
    """A process that accepts signals."""

    def send_signal(self, sig: int) -> None:
        """Send a signal."""


@contextmanager
def passed_on(receivers: Sequence[Signallable] | None) -> Iterator[None]:
    """Forward the signals that only training scripts handle, such as SIGUSR1 of Slurm.

    ``receivers`` may grow meanwhile. With None no signal is caught.
    """
    if receivers is None or threading.current_thread() is not threading.main_thread():
        yield
        return

    def send(number: int, frame: FrameType | None) -> None:
        for receiver in receivers:
            receiver.send_signal(number)

    # Batch systems can send them before a job ends (sbatch --signal), for a last checkpoint.
    previous = {number: signal.signal(number, send) for number in PASSED_ON}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


@contextmanager
def held_interrupts() -> Iterator[Interrupts]:
    """Defer SIGINT, SIGTERM and SIGHUP: the block may `check` for them; they are raised at its end.

    The default handler raises between any two instructions: a child process just started would
    be lost, and a `subprocess.Popen` just polled would keep its lock and block every later wait.
    Ignored signals (``nohup``, background jobs of a script) stay ignored. Outside the main thread
    no signal arrives, and nothing is deferred.
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
