"""Runs a command and ends all its descendants when the command or Paceline ends.

    python -I -S guard.py PARENT GRACE CORES COMMAND...

PARENT is the process to watch, GRACE the seconds between the signal and SIGKILL, CORES the
cores to pin to, comma-separated ("" for all). Linux and the standard library only. The guard is a
subreaper (prctl(2)), so that descendants that change their session or lose their parent become its
children. It ends as the command did: with the same exit code or signal.
"""

import ctypes
import os
import signal
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_CHILD_SUBREAPER = 1, 4, 36
END_SIGNALS = {signal.SIGTERM, signal.SIGINT, signal.SIGHUP}
FORWARDED = {signal.SIGUSR1, signal.SIGUSR2}
WATCHED = {signal.SIGCHLD, *END_SIGNALS, *FORWARDED}
CANNOT_RUN = 126
POLL_SECONDS = 0.02
FORCED_ROUNDS = 250


def main(parent: int, grace_seconds: float, cores: str, command: list[str]) -> None:
    """Run ``command`` until it or its parent ends, and leave no process behind."""
    # Blocked before the fork, so that sigwait misses no signal.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, WATCHED)
    control = ctypes.CDLL(None, use_errno=True).prctl
    control(PR_SET_CHILD_SUBREAPER, 1)
    control(PR_SET_PDEATHSIG, signal.SIGTERM)
    # A parent that died before the prctl sends no signal (prctl(2)): check it once.
    if os.getppid() != parent:
        return
    if cores:
        with suppress(OSError):
            os.sched_setaffinity(0, {int(core) for core in cores.split(",")})
    child = os.fork()
    if child == 0:
        _become(command, before, control)
    status, asked = _watch(child)
    reaped = _end_descendants(asked, grace_seconds)
    _leave(reaped.get(child, 0) if status is None else status, before, control)


def _become(command: list[str], mask: Iterable[int], control: Callable[..., Any]) -> None:
    """Execute the command in its own session; it is killed when the guard dies."""
    try:
        os.setsid()
        control(PR_SET_PDEATHSIG, signal.SIGKILL)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        for number in (
            signal.SIGPIPE,
            signal.SIGXFSZ,
        ):  # Python ignores them
            signal.signal(number, signal.SIG_DFL)
        os.execvp(command[0], command)
    except OSError as error:
        os.write(2, f"cannot run '{command[0]}': {error.strerror}\n".encode())
    finally:
        os._exit(CANNOT_RUN)


def _watch(child: int) -> tuple[int | None, int]:
    """Return the status of the command (None while it runs) and the signal for its descendants."""
    while True:
        number = signal.sigwait(WATCHED)
        if number == signal.SIGCHLD:
            reaped = _reap()
            if child in reaped:
                return reaped[child], signal.SIGTERM
        elif number in FORWARDED:
            with suppress(ProcessLookupError):
                os.killpg(child, number)
        else:
            return None, number


def _end_descendants(asked: int, grace_seconds: float) -> dict[int, int]:
    """End all descendants, first with a signal, then with SIGKILL; return their statuses."""
    _signal(descendants(os.getpid()), asked)
    end = time.monotonic() + grace_seconds
    while descendants(os.getpid()) and time.monotonic() < end:
        time.sleep(POLL_SECONDS)
    # A descendant may fork between the listing and the signal: repeat until none is left.
    for _ in range(FORCED_ROUNDS):
        left = descendants(os.getpid())
        if not left:
            break
        _signal(left, signal.SIGKILL)
        time.sleep(POLL_SECONDS)
    return _reap()


def descendants(process: int) -> list[int]:
    """Return the running descendants of a process, from /proc."""
    children: dict[int, list[int]] = {}
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            with suppress(OSError), open(f"{entry.path}/stat", "rb") as file:  # noqa: PTH123
                # The command name in parentheses may contain blanks and parentheses (proc(5)).
                state, parent = file.read().rpartition(b")")[2].split()[:2]
                if state != b"Z":
                    children.setdefault(int(parent), []).append(int(entry.name))
    found = []
    waiting = [process]
    while waiting:
        below = children.get(waiting.pop(), [])
        found += below
        waiting += below
    return found


def _signal(processes: list[int], number: int) -> None:
    for process in processes:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(process, number)


def _reap() -> dict[int, int]:
    """Return the statuses of children that have ended since the last call."""
    statuses: dict[int, int] = {}
    with suppress(ChildProcessError):
        while True:
            process, status = os.waitpid(-1, os.WNOHANG)
            if process == 0:
                break
            statuses[process] = status
    return statuses


def _leave(status: int, mask: Iterable[int], control: Callable[..., Any]) -> None:
    """End with the exit code or signal of the command, without a second core file."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        control(PR_SET_DUMPABLE, 0)
        if number not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        os.kill(os.getpid(), number)
    os._exit(os.WEXITSTATUS(status))


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]), sys.argv[3], sys.argv[4:])
