"""Launchers whose ranks are run by agents on their machines, and watched by files they leave."""

import signal
import time
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from paceline.launch.documents import (
    MeetingPlace,
    RankWord,
    cut_off,
    rank_host,
    rank_word,
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
from paceline.launch.onhost.agent import ASKED, NOT_MET
from paceline.launch.ports import meeting_port
from paceline.launch.processes import POLL_SECONDS, Codes, Process, run_to_end

SETTLING_SECONDS = 5.0
LONGEST_WORDS = 200
"""Characters of an engine's own words in a reason."""
MOST_WORDS = 3
"""Agents that a reason quotes."""


class AgentLauncher(Launcher):
    """A launcher that starts agents (`paceline.launch.onhost.agent`), which run the ranks.

    Every engine so keeps the same logs, tells the same of each rank, and ends everything. The
    directory of a launch must be one that all its machines see.
    """

    @abstractmethod
    def commands(self, request: LaunchRequest, agent: Sequence[str]) -> list[list[str]]:
        """Commands of this machine that together run ``agent`` once per rank or node.

        Files that they need are written to the directory of the request, and nothing is started.
        """

    def meeting_place(self, request: LaunchRequest) -> MeetingPlace:
        """Where ranks meet; all of it is left to rank 0 unless all are on this machine."""
        if request.nodes == 1:
            return MeetingPlace(port=meeting_port(request.port))
        return MeetingPlace(port=request.port)

    def host_names(self, request: LaunchRequest) -> tuple[str, ...]:
        """The machines of the nodes in order, as far as they are known before the launch."""
        return self.settings.hosts[: request.nodes]

    def trouble(self, request: LaunchRequest, command: int, log: str) -> str:
        """What went wrong, by what the command of that number printed; empty if nothing known."""
        return ""

    def verdict(self, request: LaunchRequest) -> str:
        """Why the launcher itself ended a launch that failed; empty if it did not."""
        return ""

    def restarts(self, request: LaunchRequest) -> int:
        """How often the launch was begun again."""
        return 0

    def longest_seconds(self, request: LaunchRequest) -> float:
        """How long the commands may take in all."""
        return request.timeout_seconds

    def collect(self, request: LaunchRequest) -> None:
        """Bring what ranks left into the directory of the launch, where it is not there yet."""
        return

    def is_settled(self) -> bool:
        """Whether what ranks left counts while the commands still run."""
        return True

    def prepare(self, request: LaunchRequest) -> list[list[str]]:
        """Write every file of the launch; the commands that would start it."""
        place, hosts = self.meeting_place(request), self.host_names(request)
        return self.commands(request, write_launch(request, place, hosts))

    def launch(self, request: LaunchRequest) -> LaunchExit:
        """Run the commands to their end, watching the ranks by what they leave in the directory."""
        commands = self.prepare(request)
        logs = [request.directory / f"launcher-{number}.log" for number in range(len(commands))]
        try:
            exited = run_to_end(
                [
                    partial(start_logged, words, {}, log)
                    for words, log in zip(commands, logs, strict=True)
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
        """How each rank ended; one that left no word ended as the command that runs it did."""
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
        """The end of a launch with what ranks left: hosts, clocks, reasons, whole files."""
        directory = request.directory
        ranks = tuple(_with_host(directory, one) for one in exited.ranks)
        ended = replace(exited, ranks=ranks, restarts=self.restarts(request))
        words = {rank: rank_word(directory, rank) for rank in range(request.world_size)}
        if not exited.reason:
            for rank in words:
                wrong = cut_off(directory, rank)
                if wrong:
                    return replace(
                        ended, reason=f"{named(ranks[rank])}: {wrong}", first_failed=rank
                    )
            return ended
        failed = _first_failed(directory, words) if exited.first_failed is not None else None
        verdict = self.verdict(request)
        if verdict:
            return replace(ended, reason=verdict, first_failed=failed)
        silent = [rank for rank, word in words.items() if word is None]
        asked = [rank for rank, word in words.items() if word is not None and word.reason == ASKED]
        by_itself = failed is not None and not _was_ended(words[failed])
        for rank in [*silent, *([] if by_itself else asked)]:
            command = _command_of(request, rank, len(logs))
            log = logs[command].read_text(encoding="utf-8", errors="replace")
            trouble = self.trouble(request, command, log)
            if trouble:
                return replace(ended, reason=trouble, first_failed=rank)
        if failed is None and silent and not exited.reason.startswith("timed out"):
            last = logs[_command_of(request, silent[0], len(logs))]
            return replace(ended, reason=_with_last_line(exited.reason, last))
        if failed is None:
            return ended
        word = words[failed]
        if word is not None and word.code == NOT_MET:
            return replace(ended, reason=_not_met(words), first_failed=failed)
        reason = exited.reason
        if not reason.startswith("timed out"):
            reason = describe_exit(failed, ranks[failed].code)
        if word is not None and word.reason:
            reason = f"{reason}: {word.reason}"
        return replace(ended, reason=reason, first_failed=failed)


def _not_met(words: Mapping[int, RankWord | None]) -> str:
    """What agents that did not meet say, those first that name a host which reaches nobody."""
    told = [word.reason for word in words.values() if word is not None and word.code == NOT_MET]
    first = sorted(dict.fromkeys(told), key=lambda reason: "cannot reach" not in reason)
    return "; ".join(first[:MOST_WORDS])


def _first_failed(directory: Path, words: Mapping[int, RankWord | None]) -> int | None:
    """The rank that was the first to end badly, by the clock of rank 0.

    One that was ended comes after those that ended themselves: clocks may differ by more.
    """
    bad = [
        (
            _was_ended(word),
            word.time + rank_host(directory, rank).get("clock_offset_seconds", 0.0),
            rank,
        )
        for rank, word in words.items()
        if word is not None and word.code != 0
    ]
    return min(bad)[2] if bad else None


def _was_ended(word: RankWord | None) -> bool:
    """Whether a rank was ended from outside, as when the connection to its machine breaks."""
    return word is not None and (word.reason == ASKED or word.code == -signal.SIGTERM)


def _with_last_line(reason: str, log: Path) -> str:
    """A reason with what the command of the launcher printed last."""
    lines = [one.strip() for one in log.read_text("utf-8", "replace").splitlines() if one.strip()]
    return f"{reason}: {lines[-1][:LONGEST_WORDS]}" if lines else reason


def named(rank: RankExit) -> str:
    """A rank with its host, where that is known."""
    return f"rank {rank.rank} on {rank.host}" if rank.host else f"rank {rank.rank}"


def _with_host(directory: Path, exited: RankExit) -> RankExit:
    told, word = rank_host(directory, exited.rank), rank_word(directory, exited.rank)
    if word is not None:
        exited = replace(exited, code=word.code)
    if not told:
        return exited
    return replace(
        exited,
        host=told["host"],
        clock_offset_seconds=told["clock_offset_seconds"],
        clock_error_seconds=told["clock_error_seconds"],
    )


def _command_of(request: LaunchRequest, rank: int, commands: int) -> int:
    """The command that runs a rank: there is one for all, or one per node."""
    return 0 if commands == 1 else rank // request.processes


def _settle(request: LaunchRequest) -> None:
    """Wait until every rank that began has ended: they end themselves when the engine is gone."""
    end = time.monotonic() + SETTLING_SECONDS
    while time.monotonic() < end and any(
        log.exists() and not exit_path(request.directory, rank).exists()
        for rank, log in enumerate(request.logs)
    ):
        time.sleep(POLL_SECONDS)


def _code(request: LaunchRequest, rank: int, otherwise: int | None) -> int | None:
    word = rank_word(request.directory, rank)
    return otherwise if word is None else word.code
