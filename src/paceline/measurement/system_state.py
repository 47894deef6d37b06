"""System settings that affect the speed of a launch: read, never changed.

Settings that the system does not report are left out.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path("/")
_SCHEDULERS = {0: "other", 1: "fifo", 2: "round-robin", 3: "batch", 5: "idle", 6: "deadline"}


def system_state(root: Path = ROOT) -> dict[str, Any]:
    """Governor, frequency (Hz), turbo, autogroup, scheduling class and nice value, quota of
    cores, NUMA nodes, huge pages, container and swap.
    """
    found: dict[str, Any] = {
        "governor": _governors(root),
        "frequency_hertz": _frequency(root),
        "turbo": _turbo(root),
        "autogroup": _text(root / "proc/sys/kernel/sched_autogroup_enabled") == "1",
        "scheduling": _scheduling(),
        "nice": os.getpriority(os.PRIO_PROCESS, 0),
        "quota_cores": _quota(root),
        "numa_nodes": len(list((root / "sys/devices/system/node").glob("node[0-9]*"))) or None,
        "huge_pages": _chosen(_text(root / "sys/kernel/mm/transparent_hugepage/enabled")),
        "container": _container(root, os.environ),
        "swap_bytes": _swap_bytes(root),
    }
    return {key: value for key, value in found.items() if value not in (None, "")}


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def _governors(root: Path) -> str:
    """Frequency governors of the processors, separated by commas."""
    paths = sorted((root / "sys/devices/system/cpu").glob("cpu[0-9]*/cpufreq/scaling_governor"))
    return ", ".join(dict.fromkeys(filter(None, map(_text, paths))))


def _frequency(root: Path) -> float | None:
    rates = []
    for line in _text(root / "proc/cpuinfo").splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "cpu MHz":
            try:
                rates.append(float(value) * 1e6)
            except ValueError:
                continue
    return sum(rates) / len(rates) if rates else None


def _turbo(root: Path) -> bool | None:
    off = _text(root / "sys/devices/system/cpu/intel_pstate/no_turbo")
    if off in ("0", "1"):
        return off == "0"
    boost = _text(root / "sys/devices/system/cpu/cpufreq/boost")
    return boost == "1" if boost in ("0", "1") else None


def _scheduling() -> str:
    if not hasattr(os, "sched_getscheduler"):
        return ""
    number = os.sched_getscheduler(0)
    return _SCHEDULERS.get(number, str(number))


def _quota(root: Path) -> float | None:
    """CPU quota of the control group in cores; None without a quota."""
    parts = _text(root / "sys/fs/cgroup/cpu.max").split()
    if not parts:
        parts = [
            _text(root / "sys/fs/cgroup/cpu/cpu.cfs_quota_us"),
            _text(root / "sys/fs/cgroup/cpu/cpu.cfs_period_us"),
        ]
    try:
        quota, period = map(float, parts)
    except ValueError:
        return None
    return quota / period if quota > 0 and period > 0 else None


def _chosen(text: str) -> str:
    """Bracketed choice in ``always [madvise] never``."""
    return text.partition("[")[2].partition("]")[0]


def _container(root: Path, variables: Mapping[str, str]) -> str:
    if (root / ".dockerenv").exists():
        return "docker"
    if (root / "run/.containerenv").exists():
        return "podman"
    for name, kind in (("APPTAINER_CONTAINER", "apptainer"), ("SINGULARITY_NAME", "singularity")):
        if variables.get(name):
            return kind
    return "kubernetes" if variables.get("KUBERNETES_SERVICE_HOST") else ""


def _swap_bytes(root: Path) -> float | None:
    for line in _text(root / "proc/meminfo").splitlines():
        if line.startswith("SwapTotal:"):
            try:
                return float(line.split()[1]) * 1024.0
            except (IndexError, ValueError):
                return None
    return None
