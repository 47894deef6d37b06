"""Checks for leftover processes and ports, and a launch interrupted from outside."""

import os
import signal
import threading
import time
from pathlib import Path

import psutil

from paceline.errors import PacelineError
from paceline.launch.ports import checked_port, free_port
from paceline.measurement.events import last_event, read_events
from paceline.measurement.job import Job
from paceline.measurement.run_job import events_path, run_job
from paceline.store import Launch, Store

SETTLING_SECONDS = 5.0


class LeftoverError(PacelineError):
    """A process or port outlived its launch, or there was no launch to interrupt."""


def processes_of(directory: Path) -> list[psutil.Process]:
    """Return the processes with a file of a launch among their arguments."""
    found = []
    for process in psutil.process_iter(["cmdline", "status"]):
        arguments = process.info["cmdline"] or []
        if process.info["status"] != psutil.STATUS_ZOMBIE and any(
            str(directory) in argument for argument in arguments
        ):
            found.append(process)
    return found


def check_nothing_left(directory: Path) -> None:
    """Raise if a process of the launch still runs after `SETTLING_SECONDS`."""
    end = time.monotonic() + SETTLING_SECONDS
    while left := processes_of(directory):
        if time.monotonic() > end:
            names = ", ".join(f"{process.pid} ({process.name()})" for process in left)
            raise LeftoverError(f"leftover process: {names}")
        time.sleep(0.05)


def interrupted_launch(store: Store, job: Job, timeout_seconds: float) -> Launch:
    """Run a job on a new port and send SIGTERM to its last rank once it is ready.

    Raises if it ended before that, or if the port is still in use afterwards.
    """
    port = free_port()
    launches = store.path.parent / "launches"
    before = set(launches.iterdir()) if launches.exists() else set()
    done, sent = threading.Event(), threading.Event()

    def interrupt() -> None:
        while not done.wait(0.1):
            for directory in set(launches.iterdir()) - before if launches.exists() else ():
                events = read_events(events_path(directory, job.world_size - 1))
                hello = last_event(events, "hello")
                if hello is not None and last_event(events, "ready") is not None:
                    os.kill(hello["pid"], signal.SIGTERM)
                    sent.set()
                    return

    watcher = threading.Thread(target=interrupt, daemon=True)
    watcher.start()
    try:
        launch = run_job(job, store, "contract", timeout_seconds, port)
    finally:
        done.set()
        watcher.join()
    if not sent.is_set():
        raise LeftoverError(f"the launch ended before it was interrupted: {launch.outcome.reason}")
    checked_port(port)
    return launch
