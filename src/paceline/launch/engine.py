"""Ranks that an engine starts, such as mpiexec: one process of ours stands for all of them.

The engine runs this module once per rank (``python -m paceline.launch.engine DIRECTORY``), which
takes its number from the engine and its command from ``ranks.json``, gives the rank its own log,
and writes how it ended to ``rank-N.exit``. So every engine tells the same, and ends everything.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from abc import abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from paceline.launch.launcher import Launcher, LaunchExit, LaunchRequest
from paceline.launch.local import start_logged
from paceline.launch.ports import LOOPBACK, meeting_port
from paceline.launch.processes import POLL_SECONDS, Codes, Process, end_all, run_to_end

RANK_VARIABLES = ("PMI_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK")
"""Where engines say which rank a process is."""

RANK_POLL_SECONDS = 0.1
RANK_GRACE_SECONDS = 1.0
SETTLING_SECONDS = 5.0


class EngineLauncher(Launcher):
    """A launcher whose ranks are started by another program on this machine."""

    @abstractmethod
    def engine(self, request: LaunchRequest) -> Sequence[str]:
        """The words before a command that make the engine run it once per rank."""

    def launch(self, request: LaunchRequest) -> LaunchExit:
        """Run the engine to its end, watching the ranks by what they leave in the directory."""
        engine, port = self.engine(request), meeting_port(request.port)
        ranks = [
            {
                "command": list(request.command(rank)),
                "variables": request.rank_variables(rank, LOOPBACK, port),
            }
            for rank in range(request.world_size)
        ]
        (request.directory / "ranks.json").write_text(json.dumps(ranks), encoding="utf-8")
        words = [*engine, sys.executable, "-m", "paceline.launch.engine", str(request.directory)]
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
        log.exists() and not _exit_path(request.directory, rank).exists()
        for rank, log in enumerate(request.logs)
    ):
        time.sleep(POLL_SECONDS)


def _rank_codes(request: LaunchRequest, processes: Sequence[Process]) -> Codes:
    """How each rank ended; one that left no word ended as the engine did."""
    engine = processes[0].poll()
    if engine is not None:
        _settle(request)
    return [_code(request.directory, rank, engine) for rank in range(request.world_size)]


def _code(directory: Path, rank: int, otherwise: int | None) -> int | None:
    try:
        return int(_exit_path(directory, rank).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return otherwise


def _exit_path(directory: Path, rank: int) -> Path:
    return directory / f"rank-{rank}.exit"


def run_rank(directory: Path) -> int:
    """Run the rank that the engine says this process is, until it, the engine or we end."""
    engine, asked = os.getppid(), threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, frame: asked.set())
    with suppress(PermissionError):  # some engines give each rank a session, some do not
        os.setsid()
    rank = next(int(os.environ[name]) for name in RANK_VARIABLES if name in os.environ)
    own = json.loads((directory / "ranks.json").read_text(encoding="utf-8"))[rank]
    variables = {**os.environ, **own["variables"]}
    if rank == 0:  # the only one that has the launcher's standard input
        variables["PACELINE_WATCH_STDIN"] = "1"
    with (directory / f"rank-{rank}.log").open("wb") as output:
        process = subprocess.Popen(
            own["command"],
            stdout=output,
            stderr=subprocess.STDOUT,
            env=variables,
            close_fds=False,  # engines talk to their ranks through inherited ones
            start_new_session=True,
        )
    while process.poll() is None and not asked.is_set() and os.getppid() == engine:
        time.sleep(RANK_POLL_SECONDS)
    end_all([process], RANK_GRACE_SECONDS)
    _exit_path(directory, rank).write_text(str(process.returncode), encoding="utf-8")
    return process.returncode if process.returncode >= 0 else 128 - process.returncode


if __name__ == "__main__":
    sys.exit(run_rank(Path(sys.argv[1])))
