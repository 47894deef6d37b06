"""Runs ranks of a launch on one machine: ``python agent DIRECTORY [--node N]``.

``python agent DIRECTORY --watch-input COMMAND...`` runs a launcher program instead and ends it when
standard input closes.

A launcher starts one agent per rank or per node. The agent reads ``launch.json``, joins the
rendezvous, starts each rank with its environment, cores and log, and writes its exit code to
``rank-N.exit``. It ends a rank and all its children on SIGTERM, SIGINT or SIGHUP, when its parent
is gone, and at the timeout of the launch.
"""

import json
import os
import platform
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paceline.launch.onhost.barrier import BarrierError
from paceline.launch.onhost.connections import ConnectionMonitor
from paceline.launch.onhost.placement import Placement, PlacementError, node_ranks, placement
from paceline.launch.onhost.rendezvous import (
    Rendezvous,
    RendezvousError,
    host_name,
    join_rendezvous,
)

GUARD = Path(__file__).with_name("guard.py")
POLL_SECONDS = 0.05
GRACE_SECONDS = 1.0
GUARD_SECONDS = 6.0
"""Time a guard may take after the grace period of its command."""

STUDY = "@STUDY@"
"""Placeholder in prepared commands for the study directory, wherever it is copied."""

PYTHON = "PACELINE_RANK_PYTHON"
"""Environment variable that overrides the interpreter of prepared ranks."""

END_REQUESTED = "asked to end"
LATE_SECONDS = 10.0
"""Time after the launch timeout at which the agent ends ranks that the launcher did not end."""

CANNOT_RUN, NO_RENDEZVOUS = 127, 114
UNSET = ("TORCHELASTIC_USE_AGENT_STORE",)
"""Variables that make PyTorch use torchrun's store instead of MASTER_ADDR and MASTER_PORT."""


@dataclass
class RunningRank:
    """A started rank."""

    rank: int
    process: "subprocess.Popen[bytes]"


def run_agent(directory: Path, node: int | None = None) -> int:
    """Run the ranks of this process until they end, the parent is gone or a signal arrives."""
    asked = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda number, frame: asked.set())
    launch = json.loads((directory / "launch.json").read_text(encoding="utf-8"))
    if node is None:
        mine = placement(os.environ, launch["nodes"], launch["processes"])
        _end_with_parent(asked)
    else:
        mine = Placement(node_ranks(node, launch["processes"]), "Paceline")
        _end_with_input(asked)
    return _run(directory, launch, mine, asked)


def _run(directory: Path, launch: dict[str, Any], mine: Placement, asked: threading.Event) -> int:
    deadline = time.monotonic() + launch["timeout_seconds"] + LATE_SECONDS
    for rank in mine.ranks:
        _path(directory, rank, "exit").unlink(missing_ok=True)
        _path(directory, rank, "log").touch()
    try:
        rendezvous = join_rendezvous(directory, launch, mine, asked.is_set)
    except (BarrierError, RendezvousError, OSError) as error:
        reason = f"host {host_name(launch, mine)}: {error}"
        for rank in mine.ranks:
            _path(directory, rank, "log").write_text(f"{reason}\n", encoding="utf-8")
            _write_exit(directory, rank, NO_RENDEZVOUS, reason)
        return NO_RENDEZVOUS
    running = []
    codes: dict[int, int] = {}
    for rank in mine.ranks:
        _write(_path(directory, rank, "host.json"), rendezvous.facts(rank))
        try:
            running.append(RunningRank(rank, _start(directory, launch, rank, rendezvous)))
        except OSError as error:
            program = launch["ranks"][rank]["command"][0]
            reason = f"cannot run '{program}': {error.strerror or error}"
            _path(directory, rank, "log").write_text(f"{reason}\n", encoding="utf-8")
            codes[rank] = _write_exit(directory, rank, CANNOT_RUN, reason)
    monitor = ConnectionMonitor(launch["timeout_seconds"])
    reason = _watch(directory, running, codes, asked, deadline, monitor)
    for rank_process in running:
        _end(rank_process.process)
    for rank_process in running:
        if rank_process.rank not in codes:
            code = rank_process.process.returncode
            silent = monitor.seen.get(rank_process.rank, ())
            codes[rank_process.rank] = _write_exit(
                directory, rank_process.rank, code, reason, silent
            )
    return next((_as_shell(code) for code in codes.values() if code != 0), 0)


def _watch(
    directory: Path,
    running: Sequence[RunningRank],
    codes: dict[int, int],
    asked: threading.Event,
    deadline: float,
    monitor: ConnectionMonitor,
) -> str:
    """Record each rank that ends; return the reason to end the remaining ranks."""
    while len(codes) < len(running) + sum(1 for code in codes.values() if code == CANNOT_RUN):
        for rank_process in running:
            if rank_process.rank not in codes and rank_process.process.poll() is not None:
                silent = monitor.seen.get(rank_process.rank, ())
                code = _write_exit(
                    directory, rank_process.rank, rank_process.process.returncode, "", silent
                )
                codes[rank_process.rank] = code
        left = {
            rank_process.rank: rank_process.process.pid
            for rank_process in running
            if rank_process.rank not in codes
        }
        monitor.check(left, now=asked.is_set())
        if asked.is_set():
            return END_REQUESTED
        if time.monotonic() > deadline:
            return "the launch timed out"
        time.sleep(POLL_SECONDS)
    return ""


def _start(
    directory: Path, launch: dict[str, Any], rank: int, rendezvous: Rendezvous
) -> "subprocess.Popen[bytes]":
    spec = launch["ranks"][rank]
    # The rendezvous overrides the launcher's environment, and the job overrides both.
    environment = {
        **{name: value for name, value in os.environ.items() if name not in UNSET},
        **rendezvous.variables(rank),
        **{name: _here(value, directory) for name, value in spec["variables"].items()},
    }
    command = [_here(word, directory) for word in spec["command"]]
    command[0] = os.environ.get(PYTHON, command[0])
    _check_program(command[0], environment)
    command = [
        *_guard(",".join(map(str, rendezvous.cores(rank, launch["cores_per_rank"])))),
        *command,
    ]
    with _path(directory, rank, "log").open("wb") as output:
        # MPI and PMIx talk to their ranks through inherited descriptors
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=environment,
            close_fds=False,
            start_new_session=True,
        )


def _here(word: str, directory: Path) -> str:
    """Replace the placeholder of the study directory by its path on this host."""
    return word.replace(STUDY, str(directory.parent))


def _guard(cores: str) -> list[str]:
    """Return the command prefix that runs a command under a guard; Linux only."""
    if sys.platform != "linux":
        return []
    words = [sys.executable, "-I", "-S", str(GUARD), str(os.getpid()), str(GRACE_SECONDS)]
    return [*words, cores]


def _check_program(program: str, environment: Mapping[str, str]) -> None:
    """Raise now if ``program`` cannot run: under a guard the error would only be in the log."""
    folders = [""] if os.sep in program else environment.get("PATH", os.defpath).split(os.pathsep)
    if not any(os.access(Path(folder, program), os.X_OK) for folder in folders):
        raise FileNotFoundError(2, "No such file or directory")


def _end(process: "subprocess.Popen[bytes]") -> None:
    """End a rank and all its children: SIGTERM, then SIGKILL."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(GRACE_SECONDS + GUARD_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _write_exit(
    directory: Path, rank: int, code: int, reason: str, silent: Sequence[str] = ()
) -> int:
    """Write how a rank ended and the sizes of its files, atomically.

    ``silent`` are peers that did not answer the rank.
    """
    own = [
        path for path in directory.glob(f"rank-{rank}.*") if path.suffix not in (".exit", ".part")
    ]
    sizes = {path.name: path.stat().st_size for path in own}
    document = {"code": code, "time": time.time(), "reason": reason, "files": sizes}
    document["unanswered"] = list(silent)
    _write(_path(directory, rank, "exit"), document)
    return code


def _write(path: Path, document: Mapping[str, Any]) -> None:
    part = path.with_suffix(".part")
    part.write_text(json.dumps(document), encoding="utf-8")
    part.replace(path)


def _path(directory: Path, rank: int, kind: str) -> Path:
    return directory / f"rank-{rank}.{kind}"


def _as_shell(code: int) -> int:
    return code if code >= 0 else 128 - code


def _end_with_parent(asked: threading.Event) -> None:
    """Request the end once the parent process is gone."""
    engine = os.getppid()

    def watch() -> None:
        while os.getppid() == engine:
            time.sleep(POLL_SECONDS)
        asked.set()

    threading.Thread(target=watch, daemon=True).start()


def _end_with_input(asked: threading.Event) -> None:
    """Request the end once standard input closes: then the launching process is gone."""

    def watch() -> None:
        while os.read(0, 1):
            pass
        asked.set()

    threading.Thread(target=watch, daemon=True).start()


def run_watched(command: Sequence[str]) -> int:
    """Run a command, for example torchrun, until it ends or standard input closes."""
    asked = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda number, frame: asked.set())
    _end_with_input(asked)
    process = subprocess.Popen(
        [*_guard(""), *command], stdin=subprocess.DEVNULL, start_new_session=True
    )
    while process.poll() is None and not asked.is_set():
        time.sleep(POLL_SECONDS)
    _end(process)
    return _as_shell(process.returncode)


def main(arguments: Sequence[str]) -> int:
    if arguments[1:2] == ["--watch-input"]:
        return run_watched(arguments[2:])
    directory = Path(arguments[0])
    node = int(arguments[2]) if arguments[1:2] == ["--node"] else None
    try:
        return run_agent(directory, node)
    except PlacementError as error:
        sys.stderr.write(f"{platform.node()}: {error}\n")
        return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
