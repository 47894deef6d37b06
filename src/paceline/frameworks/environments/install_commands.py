"""Runs the commands of an installation with a log, and finds the cause of a failure in it."""

import contextlib
import errno
import os
import re
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import FrameType

from paceline.errors import EnvironmentUnusableError

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


DISK_FULL = "the disk is full", "free disk space, or set PACELINE_ENVIRONMENTS to another disk"

CAUSES: Sequence[tuple[str, str, str]] = (
    (r"no space left on device|errno 28|disk quota exceeded|file too large", *DISK_FULL),
    (
        r"name resolution|name or service not known|connection refused|network is unreachable"
        r"|failed to establish a new connection|connecttimeout|read timed out|max retries"
        r"|proxyerror|certificate verify failed|connection reset",
        "cannot reach the package index",
        "check the network and pip's index settings (pip config list), then run the command again",
    ),
    (
        r"requires-python|requires a different python|requires python",
        "a package does not support this Python",
        "choose another interpreter with --python",
    ),
    (
        r"no matching distribution found for ([^\s]+)",
        "the package index has no {0} for this Python and platform",
        "choose another interpreter with --python",
    ),
    (
        r"no cmake_cxx_compiler|cmake_cxx_compiler not set|command '.*(?:gcc|g\+\+|cc)' failed: no "
        r"such file|no such file or directory: '(?:cmake|gcc|g\+\+|c\+\+|cc|make)'"
        r"|cmake: (?:command )?not found|could not find cmake",
        "a compiler or CMake is missing",
        "install a C++ compiler and CMake (Debian: apt install build-essential cmake)",
    ),
    (
        r"killed signal terminated program|cc1plus: out of memory|virtual memory exhausted",
        "the compiler ran out of memory",
        "close other programs and run the command again to resume",
    ),
    (
        r"fatal error: ([^\s:]+): no such file or directory",
        "the build did not find the header {0}",
        "install the development package that contains it",
    ),
    (r"permission denied: '?([^\s']+)", "cannot write {0}", "check its permissions"),
    (r"do not match the hashes", "a downloaded file is corrupt", "run the command again"),
)
"""Pattern in the log (lower case), cause and remedy; the first match counts."""


def diagnose(log: str) -> tuple[str, str]:
    """Return cause and remedy of a failed installation, from the end of its log."""
    text = log.lower()
    for pattern, cause, remedy in CAUSES:
        found = re.search(pattern, text)
        if found:
            return cause.format(*found.groups()), remedy
    errors = [line.strip() for line in log.splitlines() if re.match(r"\s*\w*error\b", line, re.I)]
    return (errors[-1][:160] if errors else "pip failed"), "see the log"
