"""Starts the ranks of a launch on this machine, watches them, and ends every one of them."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from paceline.errors import InputError

POLL_SECONDS = 0.02
TERM_GRACE_SECONDS = 3.0
PEER_GRACE_SECONDS = 10.0


@dataclass(frozen=True)
class RankExit:
    """How one rank's process ended: its code (negative: the signal), and where its log is."""

    rank: int
    code: int | None
    log: Path


@dataclass(frozen=True)
class LaunchExit:
    """How a whole launch ended; ``reason`` is empty when every rank ended well.

    ``first_failed`` is the rank that ended badly before any other did, if one did.
    """

    ranks: tuple[RankExit, ...]
    reason: str
    seconds: float
    first_failed: int | None = None


def launch_local(
    command: Sequence[str],
    world_size: int,
    directory: Path,
    timeout_seconds: float,
    environment: Mapping[str, str] | None = None,
    port: int | None = None,
    arguments: Callable[[int], Sequence[str]] = lambda rank: (),
) -> LaunchExit:
    """Run ``command`` once per rank and wait until all have ended or the time is up.

    Each rank gets RANK, LOCAL_RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, a session of its
    own, and ``rank-N.log`` in ``directory`` for what it prints. When one fails, the others have a
    few seconds to notice; then, as at the timeout or at an exception here, every process group is
    ended. A rank also ends by itself when this process dies, since its standard input closes.
    """
    begun = time.monotonic()
    chosen_port = free_port() if port is None else checked_port(port)
    processes: list[subprocess.Popen[bytes]] = []
    logs = [directory / f"rank-{rank}.log" for rank in range(world_size)]
    cores = pinned_cores(world_size)
    try:
        for rank, log in enumerate(logs):
            variables = {
                **os.environ,
                **(environment or {}),
                "RANK": str(rank),
                "LOCAL_RANK": str(rank),
                "WORLD_SIZE": str(world_size),
                "MASTER_ADDR": "127.0.0.1",
                "MASTER_PORT": str(chosen_port),
                "PACELINE_WATCH_STDIN": "1",
            }
            with log.open("wb") as output:
                process = subprocess.Popen(
                    [*command, *arguments(rank)],
                    stdin=subprocess.PIPE,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    env=variables,
                    start_new_session=True,
                )
            processes.append(process)
            if cores is not None:
                with contextlib.suppress(OSError):
                    os.sched_setaffinity(process.pid, cores[rank])
        reason, failed = _wait(processes, begun + timeout_seconds, timeout_seconds)
    finally:
        end_all(processes)
    exits = tuple(
        RankExit(rank, process.returncode, log)
        for rank, (process, log) in enumerate(zip(processes, logs, strict=True))
    )
    return LaunchExit(exits, reason, time.monotonic() - begun, failed)


def pinned_cores(world_size: int) -> list[set[int]] | None:
    """Each rank's share of the cores, so that ranks do not wander onto each other's.

    None where there are fewer cores than ranks, or where the system cannot pin.
    """
    if sys.platform != "linux":
        return None
    available = sorted(os.sched_getaffinity(0))
    share = len(available) // world_size
    if share == 0:
        return None
    return [set(available[rank * share : (rank + 1) * share]) for rank in range(world_size)]


def free_port() -> int:
    """A TCP port of the loopback address that nothing listens on now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def checked_port(port: int) -> int:
    """``port``, if it can be listened on."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except (OSError, OverflowError) as error:
            raise InputError(
                f"port {port} cannot be used: {error}",
                "leave --port out and a free one is chosen",
            ) from error
    return port


def _wait(
    processes: Sequence["subprocess.Popen[bytes]"], deadline: float, timeout_seconds: float
) -> tuple[str, int | None]:
    """Why the launch ended, empty if it went well, and the first rank that failed."""
    first_failed: int | None = None
    failed_at, reason = 0.0, ""
    while True:
        codes = [process.poll() for process in processes]
        moment = time.monotonic()
        if first_failed is None:
            bad = [rank for rank, code in enumerate(codes) if code not in (None, 0)]
            if bad:
                first_failed, failed_at = bad[0], moment
                reason = describe_exit(first_failed, codes[first_failed])
        over = first_failed is not None and moment > failed_at + PEER_GRACE_SECONDS
        if over or all(code is not None for code in codes):
            return reason, first_failed
        if moment > deadline:
            waiting = [str(rank) for rank, code in enumerate(codes) if code is None]
            late = f"timed out after {timeout_seconds:.0f} s: rank {', '.join(waiting)} still ran"
            return late, first_failed
        time.sleep(POLL_SECONDS)


def describe_exit(rank: int, code: int | None) -> str:
    """One phrase for a rank that did not end well."""
    if code is None:
        return f"rank {rank} did not end"
    if code >= 0:
        return f"rank {rank} ended with code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    return f"rank {rank} was killed by {name}"


def end_all(processes: Sequence["subprocess.Popen[bytes]"]) -> None:
    """End every process group that is left: first asked, then forced; then reap."""
    _signal_groups(processes, signal.SIGTERM)
    end = time.monotonic() + TERM_GRACE_SECONDS
    while time.monotonic() < end and any(process.poll() is None for process in processes):
        time.sleep(POLL_SECONDS)
    _signal_groups(processes, signal.SIGKILL)
    for process in processes:
        if process.stdin is not None:
            with contextlib.suppress(OSError):
                process.stdin.close()
        process.wait()


def _signal_groups(processes: Sequence["subprocess.Popen[bytes]"], number: signal.Signals) -> None:
    for process in processes:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, number)
