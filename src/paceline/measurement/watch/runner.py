"""Runs a command that the user gave, shows what it prints, and ends all of it in the end."""

import math
import os
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import IO

from paceline.launch import LaunchExit
from paceline.launch.processes import Process, run_to_end, start_process

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

    When it ends, the time is up, or at an interrupt, everything that it started is ended; it gets
    the signals that we get.
    """
    log = directory / LOG_NAME
    copiers: list[threading.Thread] = []

    def start() -> Process:
        reading, writing = os.pipe()
        copiers.append(threading.Thread(target=_copy, args=(reading, log, echo), daemon=True))
        copiers[0].start()
        try:
            return start_process(command, environment, writing)
        finally:
            os.close(writing)

    try:
        seconds = math.inf if timeout_seconds is None else timeout_seconds
        return run_to_end([start], [log], seconds, signals_pass=True)
    finally:
        for copier in copiers:
            copier.join(timeout=5.0)


def _copy(source: int, log: Path, echo: bool) -> None:
    """Copy output as it comes, to the log and to our own standard error.

    A place that takes no more is given up alone: the command must not wait for a reader.
    """
    with open(source, "rb", buffering=0) as output, ExitStack() as files:
        sinks: list[IO[bytes]] = [sys.stderr.buffer] if echo else []
        with suppress(OSError):
            sinks.append(files.enter_context(log.open("wb", buffering=0)))
        while chunk := output.read(CHUNK_BYTES):
            sinks = [sink for sink in sinks if _written(sink, chunk)]


def _written(sink: IO[bytes], chunk: bytes) -> bool:
    try:
        sink.write(chunk)
        sink.flush()
    except (OSError, ValueError):
        return False
    return True
