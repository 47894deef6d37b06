"""One rank under an engine: ``python -m paceline.launch.rank DIRECTORY VARIABLE...``.

The engine runs this once per rank. It takes its number from the first of the variables that the
engine sets and its command from ``ranks.json``, gives the rank its own log, writes how it ended
to ``rank-N.exit``, and ends the rank with all its children when it is asked to or the engine goes.
"""

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from paceline.errors import InputError
from paceline.launch.launcher import exit_path
from paceline.launch.processes import Process, end_all, start_process

POLL_SECONDS = 0.1
GRACE_SECONDS = 1.0
CANNOT_RUN = 127


def run_rank(directory: Path, variables: Sequence[str]) -> int:
    """Run the rank that the engine says this process is, until it, the engine or we end."""
    engine, asked = os.getppid(), threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, frame: asked.set())
    with suppress(PermissionError):  # some engines give each rank a session, some do not
        os.setsid()
    rank = next(int(os.environ[name]) for name in variables if name in os.environ)
    try:
        process = _start(directory, rank)
    except InputError as error:
        (directory / f"rank-{rank}.log").write_text(f"{error}\n", encoding="utf-8")
        return _ended(directory, rank, CANNOT_RUN)
    while process.poll() is None and not asked.is_set() and os.getppid() == engine:
        time.sleep(POLL_SECONDS)
    end_all([process], GRACE_SECONDS)
    return _ended(directory, rank, process.returncode)


def _ended(directory: Path, rank: int, code: int) -> int:
    """Leave the code for the launcher, all at once, and give it as a shell would."""
    path = exit_path(directory, rank)
    part = path.with_suffix(".part")
    part.write_text(str(code), encoding="utf-8")
    part.replace(path)
    return code if code >= 0 else 128 - code


def _start(directory: Path, rank: int) -> Process:
    ranks = json.loads((directory / "ranks.json").read_text(encoding="utf-8"))
    variables = dict(ranks[rank]["variables"])
    if rank == 0:  # the only one that has the launcher's standard input
        variables["PACELINE_WATCH_STDIN"] = "1"
    with (directory / f"rank-{rank}.log").open("wb") as output:
        # engines talk to their ranks through inherited descriptors
        return start_process(
            ranks[rank]["command"],
            variables,
            output,
            ranks[rank]["cores"],
            GRACE_SECONDS,
            close_fds=False,
        )


if __name__ == "__main__":
    sys.exit(run_rank(Path(sys.argv[1]), sys.argv[2:]))
