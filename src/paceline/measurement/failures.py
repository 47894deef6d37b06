"""Why a launch failed, in one line: what a rank said of itself, else how it ended, and its log."""

from pathlib import Path

from paceline.launch import LaunchExit
from paceline.measurement.events import Event, only

LOG_TAIL_BYTES = 4096
MOST_HOSTS = 3
"""Hosts without an answer that a reason names."""
OOM_COUNTERS = (Path("/proc/vmstat"), Path("/sys/fs/cgroup/memory.events"))


def memory_kills() -> int:
    """How many processes the kernel has ended for want of memory, as far as it tells."""
    kills = 0
    for path in OOM_COUNTERS:
        try:
            words = path.read_text(encoding="ascii").split()
        except (OSError, ValueError):
            continue
        if "oom_kill" in words:
            kills += int(words[words.index("oom_kill") + 1])
    return kills


def with_memory_kill(reason: str, kills_before: int) -> str:
    """``reason``, with what SIGKILL was for where the kernel ran out of memory meanwhile."""
    if "killed by SIGKILL" in reason and memory_kills() > kills_before:
        return f"out of memory, the kernel ended a process: {reason}"
    return reason


def failure_reason(exited: LaunchExit, ranks: list[list[Event]]) -> str:
    """Cause of a failed launch, and the log that tells more.

    Hosts that did not answer come first: the rest may follow from it. A lost connection is what
    the ranks that were left see of another's end, so that it counts only where nothing else was
    said. Empty where every rank ended well.
    """
    reason = _said_or_ended(exited, ranks)
    if not reason:
        return ""
    silence = [
        f"host {host} gets no answer from {', '.join(dict.fromkeys(peers))}"
        for host, peers in list(exited.unanswered.items())[:MOST_HOSTS]
    ]
    return "; ".join([*silence, reason])


def _said_or_ended(exited: LaunchExit, ranks: list[list[Event]]) -> str:
    """What a rank said of its failure, else how the processes ended."""
    said = {
        rank: failure for rank, events in enumerate(ranks) if (failure := only(events, "failure"))
    }
    first_hand = {rank: one for rank, one in said.items() if not _lost_connection(one)}
    if first_hand:
        rank, failure = next(iter(first_hand.items()))
        return f"{_words(rank, failure)} at {failure['place']}{_log(exited, rank)}"
    if said and "was killed by" not in exited.reason:
        rank, failure = next(iter(said.items()))
        return f"{_words(rank, failure)}{_log(exited, rank)}"
    return _ending(exited, ranks)


def first_line(text: str, width: int = 160) -> str:
    """The first line of a message, cut to a width that fits a table."""
    line = text.strip().splitlines()[0] if text.strip() else "no message"
    return line if len(line) <= width else line[: width - 3] + "..."


def _words(rank: int, failure: Event) -> str:
    return f"rank {rank}: {failure['kind']}: {first_line(failure['message'])}"


def _lost_connection(failure: Event) -> bool:
    return "connection" in failure["message"].lower()


def _ending(exited: LaunchExit, ranks: list[list[Event]]) -> str:
    """How the processes ended: badly, too late, or well but without a result."""
    if exited.reason.startswith("timed out"):
        return _too_late(exited, ranks)
    if exited.reason:
        failed = exited.first_failed or 0
        last = _last_line(exited, failed) if "ended with code" in exited.reason else ""
        return f"{exited.reason}{f': {last}' if last else ''}{_log(exited, failed)}"
    silent = [rank for rank, events in enumerate(ranks) if only(events, "end") is None]
    return f"{_no_result(silent[0])}{_log(exited, silent[0])}" if silent else ""


def _no_result(rank: int) -> str:
    return f"rank {rank} exited with code 0 but reported no result"


def _too_late(exited: LaunchExit, ranks: list[list[Event]]) -> str:
    """A launch that timed out, and the rank that the others waited for, if one was missing."""
    for one in exited.ranks:
        if one.code == 0 and only(ranks[one.rank], "end") is None:
            return f"{exited.reason}; {_no_result(one.rank)}{_log(exited, one.rank)}"
    absent = [rank for rank, events in enumerate(ranks) if only(events, "ready") is None]
    if absent:
        numbers = ", ".join(map(str, absent))
        return f"{exited.reason}; rank {numbers} did not get ready{_log(exited, absent[-1])}"
    return f"{exited.reason}{_log(exited, 0)}"


def _last_line(exited: LaunchExit, rank: int) -> str:
    """What the rank printed last: the line of a traceback that names the error."""
    try:
        tail = exited.ranks[rank].log.read_bytes()[-LOG_TAIL_BYTES:]
    except OSError:
        return ""
    lines = [line for line in tail.decode(errors="replace").splitlines() if line.strip()]
    return first_line(lines[-1]) if lines else ""


def _log(exited: LaunchExit, rank: int) -> str:
    """Where that rank's output is; of one that never began, that of its launcher."""
    log = exited.ranks[rank].log
    launchers = sorted(log.parent.glob("launcher-*.log")) if not log.exists() else []
    return f" (log: {launchers[0] if launchers else log})"
