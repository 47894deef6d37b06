"""States of the threads of a process: on a core, runnable without a core, or blocked.

Linux counts both times for each thread in ``schedstat``; the rest of the wall time is blocked.
They are unknown elsewhere. Used by workers and by watched scripts, which load this file by its
path: the standard library only, Python 3.8 and later.
"""

from __future__ import annotations

import os
import time

MAIN, MESSAGES, COMPUTE = "main", "messages", "compute"
MESSAGE_THREADS = ("gloo", "nccl", "mpi", "ucx", "tcpstore", "grpc")
"""Parts of names of threads that carry messages."""


def parse_schedstat(text: bytes) -> tuple[float, float, int] | None:
    """Seconds on a core, seconds runnable without one, and turns on a core; None if not counted."""
    try:
        running, waited, turns = map(int, text.split())
    except ValueError:
        return None
    return (running / 1e9, waited / 1e9, turns) if turns else None


LATE_SECONDS = 3e-4
"""A reading that took longer was interrupted."""


class ThreadClock:
    """Times of the thread that created it, read in about a microsecond.

    The time on a core is from the clock of the thread: ``schedstat`` counts it up to the last tick
    of the scheduler only, a few milliseconds ago. That clock lets the scheduler end the turn of the
    thread, so it is read once in each turn: the thread had its core ever since.
    """

    def __init__(self) -> None:
        self._at = self._running = self._waited = 0.0
        self._turns = 0
        self._text = b""
        self._times: tuple[float, float, int] | None = None
        try:
            self._file: int | None = os.open("/proc/thread-self/schedstat", os.O_RDONLY)
        except OSError:
            self._file = None

    def read(self, moment: float | None = None) -> tuple[float, float] | None:
        """Seconds on a core and seconds runnable until ``moment`` (default: now); None if unknown.

        ``moment`` is a reading of ``time.perf_counter`` just before: what delays the reading comes
        after it.
        """
        counted = self._counted()
        if counted is None:
            return None
        if moment is None:
            moment = time.perf_counter()
        _, waited, turns = counted
        late = 0.0
        if turns != self._turns:
            running, at = time.thread_time(), time.perf_counter()
            if at - moment > LATE_SECONDS:
                _, waited, turns = self._counted() or counted
                late = min(at - moment, waited - self._waited)
            self._at, self._running, self._waited, self._turns = at, running, waited, turns
        if late:
            return self._running, self._waited - late
        return self._running + moment - self._at, self._waited

    def _counted(self) -> tuple[float, float, int] | None:
        if self._file is None:
            return None
        try:
            text = os.pread(self._file, 64, 0)
        except OSError:
            return None
        if text != self._text:  # it changes with the ticks of the scheduler
            self._text, self._times = text, parse_schedstat(text)
        return self._times

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None


def read_text(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def thread_times(without: int | None = None) -> dict[str, tuple[str, float, float]]:
    """Class, seconds on a core and seconds runnable of each thread of this process, by number.

    The thread ``without`` is left out.
    """
    found = {}
    main = str(os.getpid())
    try:
        threads = os.listdir("/proc/self/task")
    except OSError:
        return {}
    for thread in threads:
        if thread == str(without):
            continue
        times = parse_schedstat(read_text(f"/proc/self/task/{thread}/schedstat").encode())
        if times is not None:
            name = read_text(f"/proc/self/task/{thread}/comm").lower()
            carries = any(part in name for part in MESSAGE_THREADS)
            kind = MAIN if thread == main else MESSAGES if carries else COMPUTE
            found[thread] = (kind, times[0], times[1])
    return found


def class_times(
    before: dict[str, tuple[str, float, float]], after: dict[str, tuple[str, float, float]]
) -> dict[str, list[float]]:
    """By class: threads, their seconds on a core, and the longest runnable of one of them."""
    found: dict[str, list[float]] = {}
    for thread, (kind, running, waited) in after.items():
        _, running_before, waited_before = before.get(thread, (kind, 0.0, 0.0))
        own = found.setdefault(kind, [0, 0.0, 0.0])
        own[0] += 1
        own[1] += max(0.0, running - running_before)
        own[2] = max(own[2], waited - waited_before)
    return found


def busy_seconds() -> float | None:
    """Seconds that all cores of this machine were busy since boot; None if unknown."""
    try:
        # proc(5): user nice system idle iowait irq softirq steal, in clock ticks.
        ticks = [int(number) for number in read_text("/proc/stat").splitlines()[0].split()[1:9]]
        return (sum(ticks) - ticks[3] - ticks[4]) / os.sysconf("SC_CLK_TCK")
    except (IndexError, ValueError, OSError):
        return None


def process_seconds(number: int) -> tuple[float, float]:
    """CPU seconds of another process, such as a data-loader worker, and seconds for which its main
    thread was runnable; zeros if it ended."""
    try:
        fields = read_text(f"/proc/{number}/stat").rpartition(")")[2].split()
        used = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    except (IndexError, ValueError, OSError):
        return 0.0, 0.0
    times = parse_schedstat(read_text(f"/proc/{number}/schedstat").encode())
    return used, 0.0 if times is None else times[1]


class CoreUse:
    """What used the cores: threads of this process by class, its workers, the whole machine."""

    def __init__(self, without: int | None = None) -> None:
        self._without = without
        self._at = time.perf_counter()
        self._threads, self._busy = thread_times(without), busy_seconds()
        self._workers: dict[int, tuple[float, float]] = {}

    def since_last(self, workers: list[int] | None = None) -> dict:
        """Facts since the last call: ``elapsed_seconds``, ``threads``, ``busy_seconds``, ..."""
        now, busy = time.perf_counter(), busy_seconds()
        threads = thread_times(self._without)
        facts: dict = {"elapsed_seconds": now - self._at}
        if threads and self._threads:
            facts["threads"] = class_times(self._threads, threads)
        if busy is not None and self._busy is not None:
            facts["busy_seconds"] = max(0.0, busy - self._busy)
        seen = {number: process_seconds(number) for number in workers or ()}
        nothing = (0.0, 0.0)
        for index, name in enumerate(("worker_seconds", "worker_delay_seconds")):
            facts[name] = sum(
                max(0.0, times[index] - self._workers.get(number, nothing)[index])
                for number, times in seen.items()
            )
        self._at, self._threads, self._busy, self._workers = now, threads, busy, seen
        return facts


def thread_cores() -> list[int]:
    """Affinity of all threads of this process; a framework may have changed it."""
    found: set[int] = set()
    try:
        for thread in os.listdir("/proc/self/task"):
            try:
                found |= os.sched_getaffinity(int(thread))
            except ProcessLookupError:
                continue
    except (OSError, AttributeError):
        pass
    return sorted(found)


def compute_threads() -> int:
    """Threads that the framework computes with; 0 if unknown."""
    import sys

    torch, tensorflow = sys.modules.get("torch"), sys.modules.get("tensorflow")
    if torch is not None and hasattr(torch, "get_num_threads"):
        return int(torch.get_num_threads())
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 0
    if tensorflow is not None and hasattr(tensorflow, "config"):
        # 0 is a thread for each core.
        return int(tensorflow.config.threading.get_intra_op_parallelism_threads()) or cores
    if "jax" in sys.modules:
        # XLA sizes its pool by the cores of the process and has no function that returns it.
        single = "xla_cpu_multi_thread_eigen=false" in os.environ.get("XLA_FLAGS", "")
        return 1 if single else cores
    limit = os.environ.get("OMP_NUM_THREADS", "")
    return int(limit) if limit.isdigit() else 0
