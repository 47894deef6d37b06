"""Requirements of labs, and calls of ``ip``, ``tc`` and ``nsenter``."""

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
    """A part of a lab could not be created."""


def missing_for_lab() -> str:
    """Describe the missing requirement of labs on this machine; empty if none."""
    if sys.platform != "linux":
        return "use Linux, for example in a virtual machine: labs need network namespaces"
    lacking = [name for name in PROGRAMS if _program(name) is None]
    if lacking:
        return f"install iproute2 and util-linux ({', '.join(lacking)} not found)"
    if not _may_create_namespaces():
        return "run as root (sudo): labs need network namespaces"
    return ""


def require_lab() -> None:
    missing = missing_for_lab()
    if missing:
        raise EnvironmentUnusableError("this machine cannot create a lab", missing)


def run(*command: str, lines: Sequence[str] = ()) -> str:
    """Run a program with ``lines`` as standard input; return its output."""
    done = _run(command, lines)
    if done.returncode:
        errors = done.stderr.strip().splitlines()
        raise LabError(
            f"'{' '.join(command)}' failed: {errors[0] if errors else f'code {done.returncode}'}",
            "remove the incomplete lab with 'paceline lab down'",
        )
    return done.stdout


def works(*command: str) -> bool:
    return _run(command, ()).returncode == 0


def _run(command: Sequence[str], lines: Sequence[str]) -> "subprocess.CompletedProcess[str]":
    program = _program(command[0]) or command[0]
    text = "".join(f"{line}\n" for line in lines)
    try:
        return subprocess.run(
            [program, *command[1:]],
            input=text,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise LabError(
            f"'{' '.join(command)}' timed out after {SECONDS:.0f} s", "try again"
        ) from None
    except OSError as error:
        raise LabError(f"cannot run '{command[0]}': {error.strerror}", missing_for_lab()) from error


def _program(name: str) -> str | None:
    """Return the path of a program; /usr/sbin is not on the PATH of every user."""
    path = os.environ.get("PATH", os.defpath)
    return shutil.which(name, path=os.pathsep.join((path, "/usr/sbin", "/sbin")))


def _may_create_namespaces() -> bool:
    """Return whether this process has CAP_NET_ADMIN and CAP_SYS_ADMIN."""
    try:
        with open("/proc/self/status", encoding="ascii") as status:  # noqa: PTH123
            rights = next(int(line.split()[1], 16) for line in status if line.startswith("CapEff"))
    except (OSError, StopIteration, ValueError):
        return os.geteuid() == 0
    return all(rights >> right & 1 for right in (_CAP_NET_ADMIN, _CAP_SYS_ADMIN))
