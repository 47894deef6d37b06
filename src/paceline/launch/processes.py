"""Starts, watches and ends a group of processes."""

import contextlib
import errno
import math
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, TypeAlias

from paceline.errors import InputError
from paceline.interrupts import Interrupts, held_interrupts, passed_on
from paceline.launch.launcher import (
    PEER_GRACE_SECONDS,
    LaunchExit,
    RankEvent,
    RankExit,
    describe_exit,
)

POLL_SECONDS = 0.02
TERM_GRACE_SECONDS = 3.0
GUARD = Path(__file__).parent / "onhost" / "guard.py"
NOT_FOUND = "check the path of the program"
_LIMITS = {
    errno.EMFILE: "raise the limit of open files (ulimit -n)",
    errno.EAGAIN: "raise the limit of processes (ulimit -u)",
}
GUARD_SECONDS = 6.0
"""Time a guard may take after the grace period of its command."""

Process: TypeAlias = "subprocess.Popen[bytes]"
Codes: TypeAlias = list[int | None]


def start_process(
    command: Sequence[str],
    variables: Mapping[str, str],
    output: int | IO[bytes],
    cores: Collection[int] = (),
    grace_seconds: float = TERM_GRACE_SECONDS,
    errors: int | IO[bytes] = subprocess.STDOUT,
    **options: Any,
) -> Process:
    """Start a command in its own session, with ``variables`` added to the environment.

    Its stderr goes to ``errors``, by default to ``output`` as its stdout does.
    On Linux a guard runs the command: its descendants end with it and with this process,
    even if that is killed, and it is pinned to ``cores`` before its first instruction.
    """
    environment = {**os.environ, **variables}
    _check_program(command[0], environment.get("PATH"))
    try:
        return subprocess.Popen(
            [*guard_command(cores, grace_seconds), *command],
            stdout=output,
            stderr=errors,
            env=environment,
            start_new_session=True,
            **options,
        )
    except OSError as error:
        cause = error.strerror or str(error)
        hint = _LIMITS.get(error.errno or 0, NOT_FOUND)
        raise InputError(f"cannot run '{command[0]}': {cause}", hint) from error


def guard_command(cores: Collection[int], grace_seconds: float) -> list[str]:
    """Return the command prefix that runs a command under a guard; Linux only."""
    if sys.platform != "linux":
        return []
    pinned = ",".join(map(str, sorted(cores)))
    return [sys.executable, "-I", "-S", str(GUARD), str(os.getpid()), str(grace_seconds), pinned]


def _check_program(program: str, path: str | None) -> None:
    if shutil.which(program, path=path) is None:
        exists = Path(program).exists()
        cause = "it is not an executable file" if exists else "No such file or directory"
        raise InputError(f"cannot run '{program}': {cause}", NOT_FOUND)


def exit_codes(processes: Sequence[Process]) -> Codes:
    return [process.poll() for process in processes]


def run_to_end(
    starts: Sequence[Callable[[], Process]],
    logs: Sequence[Path],
    timeout_seconds: float = math.inf,
    peer_grace_seconds: float = PEER_GRACE_SECONDS,
    on_event: Callable[[RankEvent], None] = lambda event: None,
    rank_codes: Callable[[Sequence[Process]], Codes] = exit_codes,
    on_failure: Callable[[Sequence[Process]], None] = lambda processes: None,
    signals_pass: bool = False,
) -> LaunchExit:
    """Start processes, each in its own session, and wait until all ranks have ended.

    There is one rank per log. Each process is a rank, unless ``rank_codes`` returns the codes of
    ranks. When one fails, the others have ``peer_grace_seconds`` to end; then,
    as at the timeout, on an interrupt or an exception, every process group is ended; before
    that, ``on_failure`` can inspect the running processes. With
    ``signals_pass`` processes receive the signals of this process, otherwise SIGTERM.
    """
    begun = time.monotonic()
    processes: list[Process] = []
    with held_interrupts() as interrupts, passed_on(processes if signals_pass else None):
        try:
            for start in starts:
                interrupts.check()
                _check_time(begun, timeout_seconds, len(processes), len(starts))
                processes.append(start())
            for rank in range(len(logs)):
                on_event(RankEvent(rank, time.monotonic() - begun))
            reason, failed = _wait(
                lambda: rank_codes(processes),
                begun,
                timeout_seconds,
                peer_grace_seconds,
                on_event,
                interrupts,
            )
            if reason:
                on_failure(processes)
        except StartingTooLongError as late:
            reason, failed = str(late), None
        finally:
            asked = interrupts.noted if signals_pass else None
            end_all(processes, number=asked or signal.SIGTERM)
    codes = rank_codes(processes)
    codes += [None] * (len(logs) - len(codes))
    exits = zip(codes, logs, strict=True)
    return LaunchExit(
        tuple(RankExit(rank, code, log) for rank, (code, log) in enumerate(exits)),
        reason,
        time.monotonic() - begun,
        failed,
    )


class StartingTooLongError(Exception):
    """The launch timed out before its last process was started."""


def _check_time(begun: float, timeout_seconds: float, started: int, wanted: int) -> None:
    if time.monotonic() > begun + timeout_seconds:
        raise StartingTooLongError(
            f"timed out after {timeout_seconds:.0f} s: {started} of {wanted} ranks were started"
        )


def _wait(
    codes_now: Callable[[], Codes],
    begun: float,
    timeout_seconds: float,
    peer_grace_seconds: float,
    on_event: Callable[[RankEvent], None],
    interrupts: Interrupts,
) -> tuple[str, int | None]:
    """Return why the launch failed, empty on success, and the first rank that failed."""
    first_failed: int | None = None
    failed_at, reason = 0.0, ""
    reported: set[int] = set()
    while True:
        interrupts.check()
        codes = codes_now()
        moment = time.monotonic()
        for rank, code in enumerate(codes):
            if code is not None and rank not in reported:
                reported.add(rank)
                on_event(RankEvent(rank, moment - begun, code))
        if first_failed is None:
            bad = [rank for rank, code in enumerate(codes) if code not in (None, 0)]
            if bad:
                first_failed, failed_at = bad[0], moment
                reason = describe_exit(first_failed, codes[first_failed])
        over = first_failed is not None and moment > failed_at + peer_grace_seconds
        if over or all(code is not None for code in codes):
            return reason, first_failed
        if moment > begun + timeout_seconds:
            late = f"timed out after {timeout_seconds:.0f} s"
            waiting = [str(rank) for rank, code in enumerate(codes) if code is None]
            if len(codes) > 1:
                late += f": rank {', '.join(waiting)} still ran"
            return late, first_failed
        time.sleep(POLL_SECONDS)


def end_all(
    processes: Sequence[Process],
    grace_seconds: float = TERM_GRACE_SECONDS,
    number: int = signal.SIGTERM,
) -> None:
    """End all processes and their children with the signal ``number``, then SIGKILL."""
    running = [process for process in processes if process.poll() is None]
    _signal_groups(processes if sys.platform != "linux" else running, number)
    end = time.monotonic() + grace_seconds + (GUARD_SECONDS if sys.platform == "linux" else 0)
    while time.monotonic() < end and any(process.poll() is None for process in processes):
        time.sleep(POLL_SECONDS)
    _signal_groups(processes, signal.SIGKILL)
    for process in processes:
        if process.stdin is not None:
            with contextlib.suppress(OSError):
                process.stdin.close()
        process.wait()


def _signal_groups(processes: Sequence[Process], number: int) -> None:
    for process in processes:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, number)
