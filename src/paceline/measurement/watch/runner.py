"""Runs a command that the user gave, shows what it prints, and ends all of it in the end."""

import contextlib
import os
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from paceline.errors import InputError
from paceline.measurement.launcher import POLL_SECONDS, LaunchExit, RankExit, describe_exit, end_all

CHUNK_BYTES = 1 << 16
LOG_NAME = "output.log"


def watching_environment(directory: Path, with_layers: bool) -> dict[str, str]:
    """Variables that make every Python in the command watch itself and write to ``directory``."""
    inject = Path(__file__).parent / "inject"
    path = os.environ.get("PYTHONPATH")
    return {
        "PYTHONPATH": f"{inject}{os.pathsep}{path}" if path else str(inject),
        "PACELINE_WATCH_DIR": str(directory.resolve()),
        "PACELINE_WATCH_LAYERS": "1" if with_layers else "0",
    }


def run_command(
    command: Sequence[str],
    directory: Path,
    environment: Mapping[str, str],
    timeout_seconds: float | None = None,
    echo: bool = True,
) -> LaunchExit:
    """Run ``command`` to its end; its output goes to ``output.log`` and, with ``echo``, on.

    When the time is up, or at an interrupt, the command and everything it started are ended.
    """
    begun = time.monotonic()
    log = directory / LOG_NAME
    try:
        process = subprocess.Popen(
            list(command),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**os.environ, **environment},
            start_new_session=True,
        )
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputError(f"cannot run '{command[0]}': {reason}", "is it on the path?") from error
    assert process.stdout is not None
    copier = threading.Thread(target=_copy, args=(process.stdout, log, echo), daemon=True)
    copier.start()
    try:
        reason = _wait(process, timeout_seconds, begun)
    finally:
        end_all([process])
        copier.join(timeout=5.0)
    return LaunchExit((RankExit(0, process.returncode, log),), reason, time.monotonic() - begun)


def _wait(process: "subprocess.Popen[bytes]", timeout_seconds: float | None, begun: float) -> str:
    while process.poll() is None:
        if timeout_seconds is not None and time.monotonic() - begun > timeout_seconds:
            return f"timed out after {timeout_seconds:.0f} s"
        time.sleep(POLL_SECONDS)
    return "" if process.returncode == 0 else describe_exit(0, process.returncode)


def _copy(source: IO[bytes], log: Path, echo: bool) -> None:
    """Copy output as it comes, to the log and to our own standard error."""
    with contextlib.suppress(OSError, ValueError), log.open("wb") as file:
        while chunk := os.read(source.fileno(), CHUNK_BYTES):
            file.write(chunk)
            file.flush()
            if echo:
                sys.stderr.buffer.write(chunk)
                sys.stderr.buffer.flush()
