"""Control groups (version 1 or 2) that limit the CPU time of a host."""

import os
import signal
import time
from contextlib import suppress
from pathlib import Path

from paceline.lab.machine import LabError

PERIOD_MICROSECONDS = 10_000
PARENT = "paceline-lab"
ROUNDS = 100
_ROOTS = Path("/sys/fs/cgroup")


def speed_controller() -> Path | None:
    """Return the directory of the cpu controller; None where there is none."""
    for version_1 in (_ROOTS / "cpu", _ROOTS / "cpu,cpuacct"):
        if (version_1 / "cpu.cfs_quota_us").exists() or (version_1 / "cpu.shares").exists():
            return version_1
    controllers = _ROOTS / "cgroup.controllers"
    if controllers.exists() and "cpu" in controllers.read_text(encoding="ascii").split():
        return _ROOTS
    return None


def group_directories(lab: str, hosts: int) -> tuple[tuple[str, ...], ...]:
    root = speed_controller()
    if root is None:
        raise LabError(
            "this machine has no cpu controller for control groups",
            "omit --speed, or mount the cpu controller below /sys/fs/cgroup",
        )
    return tuple((str(root / PARENT / f"{lab}-h{host}"),) for host in range(1, hosts + 1))


def create_group(directory: str, speed: float) -> None:
    """Create a group whose processes together use at most ``speed`` cores."""
    path = Path(directory)
    quota = round(speed * PERIOD_MICROSECONDS)
    try:
        path.mkdir(parents=True, exist_ok=True)
        if (path / "cpu.cfs_quota_us").exists():
            (path / "cpu.cfs_period_us").write_text(str(PERIOD_MICROSECONDS), encoding="ascii")
            (path / "cpu.cfs_quota_us").write_text(str(quota), encoding="ascii")
            return
        for above in (path.parent.parent, path.parent):
            (above / "cgroup.subtree_control").write_text("+cpu", encoding="ascii")
        (path / "cpu.max").write_text(f"{quota} {PERIOD_MICROSECONDS}", encoding="ascii")
    except OSError as error:
        raise LabError(
            f"cannot limit the CPU time in {directory}: {error.strerror}", "omit --speed"
        ) from error


def remove_group(directory: str) -> None:
    """Kill the processes of a group and remove it, and its parent if that is empty."""
    path = Path(directory)
    for _ in range(ROUNDS):
        if not path.exists():
            break
        end_processes(_members(path))
        with suppress(OSError):
            path.rmdir()
            break
        time.sleep(0.02)
    with suppress(OSError):
        path.parent.rmdir()


def end_processes(processes: list[int]) -> None:
    """Kill processes other than this one."""
    for process in processes:
        if process != os.getpid():
            with suppress(ProcessLookupError, PermissionError):
                os.kill(process, signal.SIGKILL)


def _members(path: Path) -> list[int]:
    with suppress(OSError):
        return [int(line) for line in (path / "cgroup.procs").read_text().split()]
    return []
