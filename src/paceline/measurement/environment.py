"""What is written down about the machine and the software with every launch."""

import os
import platform
import subprocess
import time
from functools import lru_cache
from pathlib import Path
from typing import Any

import psutil

from paceline import __version__

KEPT_VARIABLES = ("OMP_", "MKL_", "GLOO_", "NCCL_", "TORCH_", "KMP_", "CUDA_", "SLURM_", "HOROVOD_")


def describe_environment() -> dict[str, Any]:
    """Machine, software, load and the variables that change how training runs."""
    return {
        **_machine(),
        "paceline": __version__,
        "python": platform.python_version(),
        "git_commit": git_commit(),
        "load_average": load_average(),
        "variables": {
            name: value
            for name, value in sorted(os.environ.items())
            if name.startswith(KEPT_VARIABLES)
        },
    }


def load_average() -> float:
    """Processes that ran or waited over the last minute."""
    return os.getloadavg()[0]


class OtherPrograms:
    """How much of the machine others use from now on: busy time less our own and our children's."""

    def __init__(self) -> None:
        self._begun = self._now()

    def busy_cores(self) -> float:
        """Cores that other programs kept busy, in the mean since the beginning."""
        elapsed, busy = (now - then for now, then in zip(self._now(), self._begun, strict=True))
        return max(0.0, busy / elapsed) if elapsed > 0 else 0.0

    @staticmethod
    def _now() -> tuple[float, float]:
        machine, own = psutil.cpu_times(), os.times()
        busy = sum(machine) - machine.idle - getattr(machine, "iowait", 0.0)
        ours = own.user + own.system + own.children_user + own.children_system
        return time.monotonic(), busy - ours


def machine_fingerprint() -> str:
    """A name for this machine as far as speed goes: it changes when the hardware does."""
    machine = _machine()
    return f"{machine['cpu_model']} x{machine['cores']} {machine['memory_bytes'] / 2**30:.0f}GiB"


@lru_cache(maxsize=1)
def _machine() -> dict[str, Any]:
    return {
        "host": platform.node(),
        "system": f"{platform.system()} {platform.release()}",
        "cpu_model": cpu_model(),
        "cores": len(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else os.cpu_count(),
        "memory_bytes": psutil.virtual_memory().total,
    }


def cpu_model() -> str:
    """The processor's name as the system gives it."""
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


@lru_cache(maxsize=1)
def git_commit() -> str:
    """Commit of the repository in the current directory, with ``+`` if it has changes."""
    try:
        commit = _git("rev-parse", "HEAD")
        return commit + ("+" if _git("status", "--porcelain", "--untracked-files=no") else "")
    except (OSError, subprocess.SubprocessError):
        return ""


def _git(*arguments: str) -> str:
    answer = subprocess.run(
        ["git", *arguments], capture_output=True, text=True, timeout=5, check=True
    )
    return answer.stdout.strip()
