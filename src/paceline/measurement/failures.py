"""Reason of a failed launch in one line: the exception of a rank, else its exit; and its log."""

from pathlib import Path

from paceline.launch import LaunchExit
from paceline.measurement.events import Event, last_event

LOG_TAIL_BYTES = 4096
MOST_HOSTS = 3
"""Maximum number of unresponsive hosts in a reason."""
OOM_COUNTERS = (Path("/proc/vmstat"), Path("/sys/fs/cgroup/memory.events"))


def memory_kills() -> int:
    """Number of processes killed by the out-of-memory killer of the kernel, if reported."""
    kills = 0
    for path in OOM_COUNTERS:
        try:
            fields = path.read_text(encoding="ascii").split()
        except (OSError, ValueError):
            continue
        if "oom_kill" in fields:
            kills += int(fields[fields.index("oom_kill") + 1])
    return kills


def with_memory_kill(reason: str, kills_before: int) -> str:
    """``reason``, completed if the kernel ran out of memory since ``kills_before``."""
    if "killed by SIGKILL" in reason and memory_kills() > kills_before:
        return f"out of memory, the kernel killed a process: {reason}"
    return reason


def failure_reason(exited: LaunchExit, ranks: list[list[Event]]) -> str:
    """Cause of a failed launch and the path of the log; empty if every rank succeeded.

    Unresponsive hosts come first, since other errors may follow from them.
    """
    reason = _reported_or_exit(exited, ranks)
    if not reason:
        return ""
    silence = [
        f"host {host} gets no response from {', '.join(dict.fromkeys(peers))}"
        for host, peers in list(exited.unanswered.items())[:MOST_HOSTS]
    ]
    return "; ".join([*silence, reason])


def _reported_or_exit(exited: LaunchExit, ranks: list[list[Event]]) -> str:
    """Exception that a rank reported, else the exit of the processes."""
    failures = {
        rank: failure
        for rank, events in enumerate(ranks)
        if (failure := last_event(events, "failure"))
    }
    # Surviving ranks report a lost connection when another rank dies: an effect, not the cause.
    first_hand = {rank: one for rank, one in failures.items() if not _lost_connection(one)}
    if first_hand:
        rank, failure = next(iter(first_hand.items()))
        return f"{_describe_failure(rank, failure)} at {failure['place']}{_log(exited, rank)}"
    # Only lost connections were reported: the first is the cause, unless a rank was killed.
    if failures and "was killed by" not in exited.reason:
        rank, failure = next(iter(failures.items()))
        return f"{_describe_failure(rank, failure)}{_log(exited, rank)}"
    return _describe_exit(exited, ranks)


def first_line(text: str, width: int = 160) -> str:
    """First line of a message, truncated to fit a table."""
    line = text.strip().splitlines()[0] if text.strip() else "no message"
    return line if len(line) <= width else line[: width - 3] + "..."


def _describe_failure(rank: int, failure: Event) -> str:
    return f"rank {rank}: {failure['kind']}: {first_line(failure['message'])}"


def _lost_connection(failure: Event) -> bool:
    return "connection" in failure["message"].lower()


def _describe_exit(exited: LaunchExit, ranks: list[list[Event]]) -> str:
    """Exit of the processes: an error, a timeout, or success without a result."""
    if exited.reason.startswith("timed out"):
        return _describe_timeout(exited, ranks)
    if exited.reason:
        failed = exited.first_failed or 0
        last = _last_line(exited, failed) if "ended with code" in exited.reason else ""
        return f"{exited.reason}{f': {last}' if last else ''}{_log(exited, failed)}"
    silent = [rank for rank, events in enumerate(ranks) if last_event(events, "end") is None]
    return f"{_no_result(silent[0])}{_log(exited, silent[0])}" if silent else ""


def _no_result(rank: int) -> str:
    return f"rank {rank} exited with code 0 but reported no result"


def _describe_timeout(exited: LaunchExit, ranks: list[list[Event]]) -> str:
    for rank in exited.ranks:
        if rank.code == 0 and last_event(ranks[rank.rank], "end") is None:
            return f"{exited.reason}; {_no_result(rank.rank)}{_log(exited, rank.rank)}"
    absent = [rank for rank, events in enumerate(ranks) if last_event(events, "ready") is None]
    if absent:
        numbers = ", ".join(map(str, absent))
        return f"{exited.reason}; not ready: rank {numbers}{_log(exited, absent[-1])}"
    return f"{exited.reason}{_log(exited, 0)}"


def _last_line(exited: LaunchExit, rank: int) -> str:
    """Last line of output of a rank: in a traceback, the line that names the error."""
    try:
        tail = exited.ranks[rank].log.read_bytes()[-LOG_TAIL_BYTES:]
    except OSError:
        return ""
    lines = [line for line in tail.decode(errors="replace").splitlines() if line.strip()]
    return first_line(lines[-1]) if lines else ""


def _log(exited: LaunchExit, rank: int) -> str:
    """Path of the log of a rank; if the rank never began, of its launcher."""
    log = exited.ranks[rank].log
    launchers = sorted(log.parent.glob("launcher-*.log")) if not log.exists() else []
    return f" (log: {launchers[0] if launchers else log})"
