"""Runs the commands of an installation, with a log, and leaves no process behind."""

import contextlib
import errno
import os
import re
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import FrameType

from paceline.errors import EnvironmentUnusableError
from paceline.frameworks.environments.diagnosis import DISK_FULL, diagnose

LOG_TAIL_CHARACTERS = 20_000
INTERESTING = re.compile(
    r"^\s*(Collecting|Downloading|Installing|Building|Preparing|Using cached)\b.*"
)
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)

Report = Callable[[str], None]
"""Called with a short progress message."""


def run_logged(
    command: list[str], name: str, log: Path, report: Report, variables: Mapping[str, str]
) -> None:
    """Run a command for the environment ``name`` in its own session, with its output in ``log``.

    On any exception, also from a signal or a full disk, the command and its children are killed.
    """
    kept = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PYTHONHOME")}
    environment = {**kept, "PIP_USER": "0", "PYTHONNOUSERSITE": "1", **variables}
    with log.open("a", encoding="utf-8", errors="replace") as output:
        output.write(f"$ {' '.join(command)}\n")
        output.flush()
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            env=environment,
            start_new_session=True,
        )
        try:
            assert process.stdout is not None
            for line in process.stdout:
                output.write(line)
                output.flush()
                if INTERESTING.match(line):
                    report(line.strip()[:80])
            code = process.wait()
        except BaseException:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            raise
    if code != 0:
        text = log.read_text(encoding="utf-8", errors="replace")
        raise failed(name, log, *diagnose(text[-LOG_TAIL_CHARACTERS:]))


@contextlib.contextmanager
def explained_failures(name: str, log: Path) -> Iterator[None]:
    """Convert SIGTERM, SIGHUP and write errors into an error that names the log."""

    def stop(number: int, _: FrameType | None) -> None:
        signals = signal.Signals(number).name
        raise failed(name, log, f"interrupted by {signals}", "run the command again to resume")

    in_main = threading.current_thread() is threading.main_thread()
    before = {
        number: signal.signal(number, stop)
        for number in ((signal.SIGTERM, signal.SIGHUP) if in_main else ())
    }
    try:
        yield
    except OSError as error:
        cause, remedy = DISK_FULL if error.errno in FULL else (str(error), "see the log")
        raise failed(name, log, cause, remedy) from error
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def failed(name: str, log: Path, cause: str, remedy: str) -> EnvironmentUnusableError:
    return EnvironmentUnusableError(f"cannot install {name}: {cause} (log: {log})", remedy)
