"""Runs a user's command, copies its output, and ends all of its processes."""

import math
import os
import threading
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from selectors import EVENT_READ, DefaultSelector
from typing import IO

from paceline.launch import LaunchExit
from paceline.launch.processes import Process, run_to_end, start_process

CHUNK_BYTES = 1 << 16
LOG_NAME = "output.log"


def watching_environment(directory: Path, with_layers: bool) -> dict[str, str]:
    """Variables that make every Python process of the command record to ``directory``."""
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
    stdout: IO[bytes] | None = None,
    stderr: IO[bytes] | None = None,
) -> LaunchExit:
    """Run ``command`` with its output in ``output.log`` and on ``stdout`` and ``stderr``.

    At its end, at the timeout or at an interrupt, all processes that it started are ended. Signals
    are forwarded to it.
    """
    log = directory / LOG_NAME
    copiers: list[threading.Thread] = []

    def start() -> Process:
        (reading, writing), (reading_errors, writing_errors) = os.pipe(), os.pipe()
        sources = {reading: stdout, reading_errors: stderr}
        copiers.append(threading.Thread(target=_copy, args=(sources, log), daemon=True))
        copiers[0].start()
        try:
            return start_process(command, environment, writing, errors=writing_errors)
        finally:
            os.close(writing)
            os.close(writing_errors)

    try:
        seconds = math.inf if timeout_seconds is None else timeout_seconds
        return run_to_end([start], [log], seconds, signals_pass=True)
    finally:
        for copier in copiers:
            copier.join(timeout=5.0)


def _copy(sources: Mapping[int, IO[bytes] | None], log: Path) -> None:
    """Copy output as it arrives: each pipe to its own stream, both to the log.

    A stream that cannot be written is dropped alone, since the command must not block on a reader.
    One thread reads both pipes, which keeps the log in order.
    """
    sinks = dict(sources)
    with ExitStack() as files, DefaultSelector() as ready:
        kept: IO[bytes] | None = None
        with suppress(OSError):
            kept = files.enter_context(log.open("wb", buffering=0))
        for pipe in sources:
            files.callback(os.close, pipe)
            ready.register(pipe, EVENT_READ)
        while ready.get_map():
            for key, _ in ready.select():
                chunk = os.read(key.fd, CHUNK_BYTES)
                if not chunk:
                    ready.unregister(key.fd)
                    continue
                sinks[key.fd] = _written(sinks[key.fd], chunk)
                kept = _written(kept, chunk)


def _written(sink: IO[bytes] | None, chunk: bytes) -> IO[bytes] | None:
    try:
        if sink is not None:
            sink.write(chunk)
            sink.flush()
    except (OSError, ValueError):
        return None
    return sink
