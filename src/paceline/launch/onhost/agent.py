"""Runs ranks of a launch on one machine: ``python agent DIRECTORY [--node N]``.

``python agent DIRECTORY --watch-input COMMAND...`` runs an engine instead, and ends it when
standard input closes.

An engine starts one of these per rank or per node. It reads ``launch.json`` of the directory, meets
the agents of the other machines, gives each rank its environment, its cores and its log, writes how
it ended to ``rank-N.exit``, and ends it with all its children when it is asked to, when what
started it is gone, or when the time of the launch is up.
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

from paceline.launch.onhost.connections import Lookout
from paceline.launch.onhost.meeting_place import MeetingError, Met, host_name, meet
from paceline.launch.onhost.placement import Placement, PlacementError, node_ranks, placement
from paceline.launch.onhost.roll_call import RollCallError

GUARD = Path(__file__).with_name("guard.py")
POLL_SECONDS = 0.05
GRACE_SECONDS = 1.0
GUARD_SECONDS = 6.0
"""How long a guard may take beyond the grace of its command."""

STUDY = "@STUDY@"
"""Stands in prepared commands for the directory of the study, wherever it is copied to."""

PYTHON = "PACELINE_RANK_PYTHON"
"""A variable that names another interpreter for ranks than the one they were prepared with."""

ASKED = "asked to end"
LATE_SECONDS = 10.0
"""By how much ranks may outlast the launch whose launcher should have ended them."""

CANNOT_RUN, NOT_MET = 127, 114
LEFT_OUT = ("TORCHELASTIC_USE_AGENT_STORE",)
"""Variables that make frameworks meet somewhere else than at MASTER_ADDR and MASTER_PORT."""


@dataclass
class RunningRank:
    """A rank that was started."""

    rank: int
    process: "subprocess.Popen[bytes]"


def run_agent(directory: Path, node: int | None = None) -> int:
    """Run the ranks that are this process's until they, what started it or we are to end."""
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
        met = meet(directory, launch, mine, asked.is_set)
    except (RollCallError, MeetingError, OSError) as error:
        words = f"host {host_name(launch, mine)}: {error}"
        for rank in mine.ranks:
            _path(directory, rank, "log").write_text(f"{words}\n", encoding="utf-8")
            _write_exit(directory, rank, NOT_MET, words)
        return NOT_MET
    running = []
    codes: dict[int, int] = {}
    for rank in mine.ranks:
        _write(_path(directory, rank, "host.json"), met.facts(rank))
        try:
            running.append(RunningRank(rank, _start(directory, launch, rank, met)))
        except OSError as error:
            program = launch["ranks"][rank]["command"][0]
            words = f"cannot run '{program}': {error.strerror or error}"
            _path(directory, rank, "log").write_text(f"{words}\n", encoding="utf-8")
            codes[rank] = _write_exit(directory, rank, CANNOT_RUN, words)
    lookout = Lookout(launch["timeout_seconds"])
    reason = _watch(directory, running, codes, asked, deadline, lookout)
    for one in running:
        _end(one.process)
    for one in running:
        if one.rank not in codes:
            code = one.process.returncode
            silent = lookout.seen.get(one.rank, ())
            codes[one.rank] = _write_exit(directory, one.rank, code, reason, silent)
    return next((_as_shell(code) for code in codes.values() if code != 0), 0)


def _watch(
    directory: Path,
    running: Sequence[RunningRank],
    codes: dict[int, int],
    asked: threading.Event,
    deadline: float,
    lookout: Lookout,
) -> str:
    """Write down each rank that ends; returns why those that are left must end."""
    while len(codes) < len(running) + sum(1 for code in codes.values() if code == CANNOT_RUN):
        for one in running:
            if one.rank not in codes and one.process.poll() is not None:
                silent = lookout.seen.get(one.rank, ())
                code = _write_exit(directory, one.rank, one.process.returncode, "", silent)
                codes[one.rank] = code
        left = {one.rank: one.process.pid for one in running if one.rank not in codes}
        lookout.look(left, now=asked.is_set())
        if asked.is_set():
            return ASKED
        if time.monotonic() > deadline:
            return "the time of the launch was up"
        time.sleep(POLL_SECONDS)
    return ""


def _start(
    directory: Path, launch: dict[str, Any], rank: int, met: Met
) -> "subprocess.Popen[bytes]":
    wanted = launch["ranks"][rank]
    environment = {
        **{name: value for name, value in os.environ.items() if name not in LEFT_OUT},
        **met.variables(rank),
        **{name: _here(value, directory) for name, value in wanted["variables"].items()},
    }
    words = [_here(word, directory) for word in wanted["command"]]
    words[0] = os.environ.get(PYTHON, words[0])
    _check_program(words[0], environment)
    words = [*_guard(",".join(map(str, met.cores(rank, launch["cores_per_rank"])))), *words]
    with _path(directory, rank, "log").open("wb") as output:
        # engines talk to their ranks through inherited descriptors
        return subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=environment,
            close_fds=False,
            start_new_session=True,
        )


def _here(word: str, directory: Path) -> str:
    """A word of a prepared command, with the directory of the study where it is now."""
    return word.replace(STUDY, str(directory.parent))


def _guard(cores: str) -> list[str]:
    """What goes before a command so that a guard runs it; nothing where there is no guard."""
    if sys.platform != "linux":
        return []
    words = [sys.executable, "-I", "-S", str(GUARD), str(os.getpid()), str(GRACE_SECONDS)]
    return [*words, cores]


def _check_program(program: str, environment: Mapping[str, str]) -> None:
    """Raise what running ``program`` would, which a guard could only tell in a log."""
    folders = [""] if os.sep in program else environment.get("PATH", os.defpath).split(os.pathsep)
    if not any(os.access(Path(folder, program), os.X_OK) for folder in folders):
        raise FileNotFoundError(2, "No such file or directory")


def _end(process: "subprocess.Popen[bytes]") -> None:
    """End a rank with all it started: asked, then forced."""
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
    """Leave word of how a rank ended, and how large its files are, all at once.

    ``silent`` are peers that did not answer it.
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
    """Be asked to end once the engine that started us is gone."""
    engine = os.getppid()

    def watch() -> None:
        while os.getppid() == engine:
            time.sleep(POLL_SECONDS)
        asked.set()

    threading.Thread(target=watch, daemon=True).start()


def _end_with_input(asked: threading.Event) -> None:
    """Be asked to end once our standard input closes: who started us is gone."""

    def watch() -> None:
        while os.read(0, 1):
            pass
        asked.set()

    threading.Thread(target=watch, daemon=True).start()


def run_watched(command: Sequence[str]) -> int:
    """Run a command, such as an engine on another machine, until it or our standard input ends."""
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
    """Run what the command line names."""
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
