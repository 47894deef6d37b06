"""Machine and software as recorded with every launch."""

import os
import platform
import subprocess
import time
from functools import lru_cache
from pathlib import Path
from typing import Any

import psutil

from paceline import __version__
from paceline.measurement.system_state import system_state

KEPT_VARIABLES = frozenset(
    [
        *("CUDA_DEVICE_MAX_CONNECTIONS", "CUDA_DEVICE_ORDER", "CUDA_LAUNCH_BLOCKING"),
        *("CUDA_VERSION", "CUDA_VISIBLE_DEVICES", "DNNL_MAX_CPU_ISA", "GLOO_DEVICE_TRANSPORT"),
        *("GLOO_SOCKET_IFNAME", "HOROVOD_CACHE_CAPACITY", "HOROVOD_CPU_OPERATIONS"),
        *("HOROVOD_CYCLE_TIME", "HOROVOD_FUSION_THRESHOLD", "HOROVOD_GPU_OPERATIONS"),
        *("HOROVOD_HIERARCHICAL_ALLREDUCE", "KMP_AFFINITY", "KMP_BLOCKTIME", "KMP_SETTINGS"),
        *("MALLOC_ARENA_MAX", "MKL_DYNAMIC", "MKL_ENABLE_INSTRUCTIONS", "MKL_NUM_THREADS"),
        *("NCCL_ALGO", "NCCL_BUFFSIZE", "NCCL_COLLNET_ENABLE", "NCCL_CROSS_NIC", "NCCL_DEBUG"),
        *("NCCL_IB_DISABLE", "NCCL_IB_GID_INDEX", "NCCL_IB_HCA", "NCCL_IB_TC"),
        *("NCCL_MAX_NCHANNELS", "NCCL_MIN_NCHANNELS", "NCCL_NET", "NCCL_NET_GDR_LEVEL"),
        *("NCCL_NSOCKS_PERTHREAD", "NCCL_NTHREADS", "NCCL_NVLS_ENABLE", "NCCL_P2P_DISABLE"),
        *("NCCL_P2P_LEVEL", "NCCL_PROTO", "NCCL_SHM_DISABLE", "NCCL_SOCKET_IFNAME"),
        *("NCCL_SOCKET_NTHREADS", "OMP_DYNAMIC", "OMP_NUM_THREADS", "OMP_PLACES", "OMP_PROC_BIND"),
        *("OMP_SCHEDULE", "OMP_WAIT_POLICY", "OPENBLAS_NUM_THREADS", "SLURM_CLUSTER_NAME"),
        *("SLURM_CPUS_ON_NODE", "SLURM_CPUS_PER_TASK", "SLURM_CPU_BIND", "SLURM_GPUS_ON_NODE"),
        *("SLURM_GPUS_PER_NODE", "SLURM_JOB_ID", "SLURM_JOB_NAME", "SLURM_JOB_NUM_NODES"),
        *("SLURM_JOB_PARTITION", "SLURM_MEM_PER_NODE", "SLURM_NNODES", "SLURM_NTASKS"),
        *("SLURM_NTASKS_PER_NODE", "SLURM_STEP_ID", "TF_ENABLE_ONEDNN_OPTS"),
        *("TORCHINDUCTOR_MAX_AUTOTUNE", "TORCH_COMPILE_DISABLE", "TORCH_CUDNN_V8_API_ENABLED"),
        *("TORCH_DISTRIBUTED_DEBUG", "TORCH_NCCL_AVOID_RECORD_STREAMS", "TORCH_NCCL_BLOCKING_WAIT"),
        *("XLA_FLAGS",),
    ]
)
"""Variables that affect training; no others are recorded, since they may hold secrets."""


def describe_environment() -> dict[str, Any]:
    """Machine, software, load and the environment variables that affect training."""
    return {
        **_machine(),
        "paceline": __version__,
        "python": platform.python_version(),
        "git_commit": git_commit(),
        "load_average": load_average(),
        **system_state(),
        "variables": {
            name: value for name, value in sorted(os.environ.items()) if name in KEPT_VARIABLES
        },
    }


def load_average() -> float:
    return os.getloadavg()[0]


class OtherPrograms:
    """CPU use of other programs from now on: busy time minus our own and our children's."""

    def __init__(self) -> None:
        self._begun = self._now()

    def busy_cores(self) -> float:
        """Mean number of cores kept busy by other programs since the beginning."""
        elapsed, busy = (now - then for now, then in zip(self._now(), self._begun, strict=True))
        return max(0.0, busy / elapsed) if elapsed > 0 else 0.0

    @staticmethod
    def _now() -> tuple[float, float]:
        machine, own = psutil.cpu_times(), os.times()
        busy = sum(machine) - machine.idle - getattr(machine, "iowait", 0.0)
        ours = own.user + own.system + own.children_user + own.children_system
        return time.monotonic(), busy - ours


def machine_fingerprint() -> str:
    """Name of this machine by its hardware: processor, cores and memory."""
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
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


_NO_PROGRAMS = ("-c", "core.fsmonitor=false", "-c", f"core.hooksPath={os.devnull}")


@lru_cache(maxsize=1)
def git_commit() -> str:
    """Commit of the repository in the current directory, with ``+`` if it has changes."""
    try:
        commit = _git("rev-parse", "HEAD")
        return commit + ("+" if _git("status", "--porcelain", "--untracked-files=no") else "")
    except (OSError, subprocess.SubprocessError):
        return ""


def _git(*arguments: str) -> str:
    """Output of git, without hooks and programs that an untrusted repository may configure."""
    answer = subprocess.run(
        ["git", *_NO_PROGRAMS, *arguments],
        capture_output=True,
        text=True,
        timeout=5,
        check=True,
        env={**os.environ, "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0"},
    )
    return answer.stdout.strip()
