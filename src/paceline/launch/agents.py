"""Base of launchers whose ranks are run by agents on the hosts and watched through files."""

import signal
import time
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from paceline.launch.launch_files import (
    RankStatus,
    RendezvousAddress,
    incomplete_file,
    rank_host,
    rank_status,
    unanswered_by_host,
    write_launch,
)
from paceline.launch.launcher import (
    Launcher,
    LaunchExit,
    LaunchRequest,
    RankExit,
    describe_exit,
    exit_path,
)
from paceline.launch.local import start_logged
from paceline.launch.onhost.agent import END_REQUESTED, NO_RENDEZVOUS
from paceline.launch.ports import rendezvous_port
from paceline.launch.processes import POLL_SECONDS, Codes, Process, run_to_end

SETTLING_SECONDS = 5.0
MAX_QUOTE_CHARACTERS = 200
"""Longest quotation of a launcher's output in a reason."""
MAX_QUOTED_AGENTS = 3
"""Number of agents whose message a reason quotes."""


class AgentLauncher(Launcher):
    """A launcher that starts agents (`paceline.launch.onhost.agent`), which run the ranks.

    All such launchers keep the same logs, report the same about each rank and end all processes.
    All hosts must see the directory of the launch.
    """

    @abstractmethod
    def commands(self, request: LaunchRequest, agent: Sequence[str]) -> list[list[str]]: ...

    def rendezvous_address(self, request: LaunchRequest) -> RendezvousAddress:
        """Return the rendezvous address; rank 0 chooses it unless all ranks are on this machine."""
        if request.nodes == 1:
            return RendezvousAddress(port=rendezvous_port(request.port))
        return RendezvousAddress(port=request.port)

    def host_names(self, request: LaunchRequest) -> tuple[str, ...]:
        """Return the hosts of the nodes in order, as far as they are known before the launch."""
        return self.settings.hosts[: request.nodes]

    def failure_cause(self, request: LaunchRequest, command: int, log: str) -> str:
        """Return the cause of a failure found in the log of a command; empty if unknown."""
        return ""

    def end_reason(self, request: LaunchRequest) -> str:
        """Return why the launcher itself ended a failed launch; empty if it did not."""
        return ""

    def restarts(self, request: LaunchRequest) -> int:
        return 0

    def longest_seconds(self, request: LaunchRequest) -> float:
        """Return the timeout of all commands together."""
        return request.timeout_seconds

    def collect(self, request: LaunchRequest) -> None:
        """Fetch the files of ranks into the directory of the launch, where it is not shared."""
        return

    def is_settled(self) -> bool:
        """Return whether exit files of ranks count while the commands still run."""
        return True

    def prepare(self, request: LaunchRequest) -> list[list[str]]:
        """Write the files of the launch; return the commands that would start it."""
        address, hosts = self.rendezvous_address(request), self.host_names(request)
        return self.commands(request, write_launch(request, address, hosts))

    def launch(self, request: LaunchRequest) -> LaunchExit:
        """Run the commands to their end and watch the ranks through their files."""
        commands = self.prepare(request)
        logs = [request.directory / f"launcher-{number}.log" for number in range(len(commands))]
        try:
            exited = run_to_end(
                [
                    partial(start_logged, command, {}, log)
                    for command, log in zip(commands, logs, strict=True)
                ],
                request.logs,
                self.longest_seconds(request),
                request.peer_grace_seconds,
                request.on_event,
                partial(self._rank_codes, request),
            )
        finally:
            _settle(request)
        self.collect(request)
        ended = self._collected(request, exited, logs)
        return replace(ended, unanswered=unanswered_by_host(request.directory, ended.ranks))

    def _rank_codes(self, request: LaunchRequest, processes: Sequence[Process]) -> Codes:
        """Return the code of each rank; without an exit file, that of its command."""
        codes = [process.poll() for process in processes]
        if None not in codes:
            _settle(request)
        elif not self.is_settled():
            return [None] * request.world_size
        return [
            _code(request, rank, codes[_command_of(request, rank, len(codes))])
            for rank in range(request.world_size)
        ]

    def _collected(
        self, request: LaunchRequest, exited: LaunchExit, logs: Sequence[Path]
    ) -> LaunchExit:
        """Add hosts, clocks and reasons from the files of ranks; check that files are complete."""
        directory = request.directory
        ranks = tuple(_with_host(directory, rank) for rank in exited.ranks)
        ended = replace(exited, ranks=ranks, restarts=self.restarts(request))
        statuses = {rank: rank_status(directory, rank) for rank in range(request.world_size)}
        if not exited.reason:
            for rank in statuses:
                fault = incomplete_file(directory, rank)
                if fault:
                    return replace(
                        ended, reason=f"{named(ranks[rank])}: {fault}", first_failed=rank
                    )
            return ended
        failed = _first_failed(directory, statuses) if exited.first_failed is not None else None
        end_reason = self.end_reason(request)
        if end_reason:
            return replace(ended, reason=end_reason, first_failed=failed)
        # Ranks without an exit file never started, or their host was lost: the launcher's log has
        # the cause. Ranks that were ended by request only matter if no rank failed by itself.
        silent = [rank for rank, status in statuses.items() if status is None]
        asked = [
            rank for rank, status in statuses.items() if status and status.reason == END_REQUESTED
        ]
        by_itself = failed is not None and not _was_ended(statuses[failed])
        for rank in [*silent, *([] if by_itself else asked)]:
            command = _command_of(request, rank, len(logs))
            log = logs[command].read_text(encoding="utf-8", errors="replace")
            cause = self.failure_cause(request, command, log)
            if cause:
                return replace(ended, reason=cause, first_failed=rank)
        if failed is None and silent and not exited.reason.startswith("timed out"):
            last = logs[_command_of(request, silent[0], len(logs))]
            return replace(ended, reason=_with_last_line(exited.reason, last))
        if failed is None:
            return ended
        status = statuses[failed]
        if status is not None and status.code == NO_RENDEZVOUS:
            return replace(ended, reason=_no_rendezvous(statuses), first_failed=failed)
        reason = exited.reason
        if not reason.startswith("timed out"):
            reason = describe_exit(failed, ranks[failed].code)
        if status is not None and status.reason:
            reason = f"{reason}: {status.reason}"
        return replace(ended, reason=reason, first_failed=failed)


def _no_rendezvous(statuses: Mapping[int, RankStatus | None]) -> str:
    """Join the messages of agents without a rendezvous; hosts that reach no other come first."""
    reasons = [
        status.reason for status in statuses.values() if status and status.code == NO_RENDEZVOUS
    ]
    first = sorted(dict.fromkeys(reasons), key=lambda reason: "cannot reach" not in reason)
    return "; ".join(first[:MAX_QUOTED_AGENTS])


def _first_failed(directory: Path, statuses: Mapping[int, RankStatus | None]) -> int | None:
    """Return the rank that failed first, by the clock of rank 0.

    Ranks that were ended from outside come last: the clock error may exceed the difference.
    """
    bad = [
        (
            _was_ended(status),
            status.time + rank_host(directory, rank).get("clock_offset_seconds", 0.0),
            rank,
        )
        for rank, status in statuses.items()
        if status is not None and status.code != 0
    ]
    return min(bad)[2] if bad else None


def _was_ended(status: RankStatus | None) -> bool:
    """Return whether a rank was ended from outside, e.g. by a broken ssh connection."""
    return status is not None and (status.reason == END_REQUESTED or status.code == -signal.SIGTERM)


def _with_last_line(reason: str, log: Path) -> str:
    lines = [
        line.strip() for line in log.read_text("utf-8", "replace").splitlines() if line.strip()
    ]
    return f"{reason}: {lines[-1][:MAX_QUOTE_CHARACTERS]}" if lines else reason


def named(rank: RankExit) -> str:
    """Return the rank with its host, where that is known."""
    return f"rank {rank.rank} on {rank.host}" if rank.host else f"rank {rank.rank}"


def _with_host(directory: Path, exited: RankExit) -> RankExit:
    host, status = rank_host(directory, exited.rank), rank_status(directory, exited.rank)
    if status is not None:
        exited = replace(exited, code=status.code)
    if not host:
        return exited
    return replace(
        exited,
        host=host["host"],
        clock_offset_seconds=host["clock_offset_seconds"],
        clock_error_seconds=host["clock_error_seconds"],
    )


def _command_of(request: LaunchRequest, rank: int, commands: int) -> int:
    """Return the index of the command of a rank: there is one for all, or one per node."""
    return 0 if commands == 1 else rank // request.processes


def _settle(request: LaunchRequest) -> None:
    """Wait until every started rank has ended: agents end them when the launcher is gone."""
    end = time.monotonic() + SETTLING_SECONDS
    while time.monotonic() < end and any(
        log.exists() and not exit_path(request.directory, rank).exists()
        for rank, log in enumerate(request.logs)
    ):
        time.sleep(POLL_SECONDS)


def _code(request: LaunchRequest, rank: int, default: int | None) -> int | None:
    status = rank_status(request.directory, rank)
    return default if status is None else status.code
