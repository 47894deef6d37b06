"""What this machine must have for a lab, and its programs run with errors that say what to do."""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence

from paceline.errors import EnvironmentUnusableError, PacelineError

PROGRAMS = ("ip", "tc", "nsenter")
SECONDS = 30.0
_CAP_NET_ADMIN, _CAP_SYS_ADMIN = 12, 21


class LabError(PacelineError):
    """The machine refused a part of a lab."""


def missing_for_lab() -> str:
    """What this machine lacks for a lab, in words; empty if nothing."""
    if sys.platform != "linux":
        return "network namespaces are Linux's; on another system use a virtual machine"
    lacking = [name for name in PROGRAMS if _program(name) is None]
    if lacking:
        return f"install iproute2 and util-linux: no program {', '.join(lacking)} is here"
    if not _may_make_networks():
        return "become root (sudo), which alone may make network namespaces"
    return ""


def require_lab() -> None:
    """Raise, with what to do, unless labs can be made here."""
    missing = missing_for_lab()
    if missing:
        raise EnvironmentUnusableError("a lab cannot be made here", missing)


def run(*words: str, lines: Sequence[str] = ()) -> str:
    """Run a program, with ``lines`` for its standard input; what it printed."""
    done = _run(words, lines)
    if done.returncode:
        told = done.stderr.strip().splitlines()
        raise LabError(
            f"'{' '.join(words)}' failed: {told[0] if told else f'code {done.returncode}'}",
            "'paceline lab down' removes what was made",
        )
    return done.stdout


def works(*words: str) -> bool:
    """Whether a program ended well."""
    return _run(words, ()).returncode == 0


def _run(words: Sequence[str], lines: Sequence[str]) -> "subprocess.CompletedProcess[str]":
    program = _program(words[0]) or words[0]
    text = "".join(f"{line}\n" for line in lines)
    try:
        return subprocess.run(
            [program, *words[1:]],
            input=text,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise LabError(f"'{' '.join(words)}' did not end in {SECONDS:.0f} s", "try again") from None
    except OSError as error:
        raise LabError(f"cannot run '{words[0]}': {error.strerror}", missing_for_lab()) from error


def _program(name: str) -> str | None:
    """Where a program is; those of the administrator are not on everyone's path."""
    path = os.environ.get("PATH", os.defpath)
    return shutil.which(name, path=os.pathsep.join((path, "/usr/sbin", "/sbin")))


def _may_make_networks() -> bool:
    """Whether this process has the rights over networks and mounts."""
    try:
        with open("/proc/self/status", encoding="ascii") as status:  # noqa: PTH123
            rights = next(int(line.split()[1], 16) for line in status if line.startswith("CapEff"))
    except (OSError, StopIteration, ValueError):
        return os.geteuid() == 0
    return all(rights >> right & 1 for right in (_CAP_NET_ADMIN, _CAP_SYS_ADMIN))
