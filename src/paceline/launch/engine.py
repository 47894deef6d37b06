"""Ranks that an engine starts, such as mpiexec: one process of ours stands for all of them."""

import json
import sys
import time
from abc import abstractmethod
from collections.abc import Sequence
from functools import partial

from paceline.launch.launcher import Launcher, LaunchExit, LaunchRequest, exit_path
from paceline.launch.local import pinned_cores, start_logged
from paceline.launch.ports import LOOPBACK, meeting_port
from paceline.launch.processes import POLL_SECONDS, Codes, Process, run_to_end

SETTLING_SECONDS = 5.0


class EngineLauncher(Launcher):
    """A launcher whose ranks are started by another program on this machine.

    The engine is made to run `paceline.launch.rank` once per rank, so that every engine keeps the
    same logs, tells the same of each rank, and ends everything.
    """

    rank_variables: tuple[str, ...]
    """Where the engine may say which rank a process is; the first that is set counts."""

    @abstractmethod
    def engine(self, request: LaunchRequest) -> Sequence[str]:
        """The words before a command that make the engine run it once per rank."""

    def launch(self, request: LaunchRequest) -> LaunchExit:
        """Run the engine to its end, watching the ranks by what they leave in the directory."""
        engine, port = self.engine(request), meeting_port(request.port)
        cores = pinned_cores(request.world_size, request.cores_per_rank)
        ranks = [
            {
                "cores": cores[rank],
                "command": list(request.command(rank)),
                "variables": request.rank_variables(rank, LOOPBACK, port),
            }
            for rank in range(request.world_size)
        ]
        (request.directory / "ranks.json").write_text(json.dumps(ranks), encoding="utf-8")
        rank = [sys.executable, "-P", "-m", "paceline.launch.rank", str(request.directory)]
        words = [*engine, *rank, *self.rank_variables]
        try:
            return run_to_end(
                [partial(start_logged, words, {}, request.directory / "engine.log")],
                request.logs,
                request.timeout_seconds,
                request.peer_grace_seconds,
                request.on_event,
                partial(_rank_codes, request),
            )
        finally:
            _settle(request)


def _settle(request: LaunchRequest) -> None:
    """Wait until every rank that began has ended: they end themselves when the engine is gone."""
    end = time.monotonic() + SETTLING_SECONDS
    while time.monotonic() < end and any(
        log.exists() and not exit_path(request.directory, rank).exists()
        for rank, log in enumerate(request.logs)
    ):
        time.sleep(POLL_SECONDS)


def _rank_codes(request: LaunchRequest, processes: Sequence[Process]) -> Codes:
    """How each rank ended; one that left no word ended as the engine did."""
    engine = processes[0].poll()
    if engine is not None:
        _settle(request)
    return [_code(request, rank, engine) for rank in range(request.world_size)]


def _code(request: LaunchRequest, rank: int, otherwise: int | None) -> int | None:
    try:
        return int(exit_path(request.directory, rank).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return otherwise
