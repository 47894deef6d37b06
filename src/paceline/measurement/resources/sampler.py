"""Samples the ranks of a launch from a process of its own, until standard input closes.

    python sampler.py DIRECTORY SECONDS

Writes JSON lines to ``DIRECTORY/samples.jsonl``. The ranks are those with a hello event in
their files there. The standard library only. Each sample has ``time``, ``cpu_seconds`` and
``memory_bytes`` by rank, ``network_bytes`` (received, each network namespace once),
``package_joules`` if the kernel reports them, and by GPU ``busy`` (a fraction), ``watts`` and
``memory_bytes`` through NVML if available.
"""

import ctypes
import json
import os
import select
import sys
import time
from pathlib import Path
from typing import Any

TICKS = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")
PACKAGES = Path("/sys/class/powercap")
EVENTS = "rank-*.events.jsonl"
SUCCESS = 0


class _Utilisation(ctypes.Structure):
    _fields_ = [("gpu", ctypes.c_uint), ("memory", ctypes.c_uint)]


class _Memory(ctypes.Structure):
    _fields_ = [(name, ctypes.c_ulonglong) for name in ("total", "free", "used")]


class Gpus:
    """The GPUs that NVML reports; none if its library is missing or does not start."""

    def __init__(self) -> None:
        self.handles: list[ctypes.c_void_p] = []
        try:
            self.library = ctypes.CDLL("libnvidia-ml.so.1")
            if self.library.nvmlInit_v2() != SUCCESS:
                return
            count = ctypes.c_uint()
            if self.library.nvmlDeviceGetCount_v2(ctypes.byref(count)) != SUCCESS:
                return
            for index in range(count.value):
                handle = ctypes.c_void_p()
                found = self.library.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(handle))
                if found == SUCCESS:
                    self.handles.append(handle)
        except (OSError, AttributeError):
            self.handles = []

    def sample(self) -> list[dict[str, float]]:
        """Current values of each GPU, without those that it does not report."""
        return [self._one(handle) for handle in self.handles]

    def _one(self, handle: ctypes.c_void_p) -> dict[str, float]:
        rates, power, memory = _Utilisation(), ctypes.c_uint(), _Memory()
        values: dict[str, float] = {}
        library = self.library
        if library.nvmlDeviceGetUtilizationRates(handle, ctypes.byref(rates)) == SUCCESS:
            values["busy"] = rates.gpu / 100.0
        if library.nvmlDeviceGetPowerUsage(handle, ctypes.byref(power)) == SUCCESS:
            values["watts"] = power.value / 1000.0
        if library.nvmlDeviceGetMemoryInfo(handle, ctypes.byref(memory)) == SUCCESS:
            values["memory_bytes"] = float(memory.used)
        return values


def hello_pids(directory: Path) -> dict[int, int]:
    """Process id of each rank that has written its hello event."""
    found = {}
    for path in directory.glob(EVENTS):
        try:
            with path.open(encoding="utf-8") as file:
                event = json.loads(file.readline())
            found[int(event["rank"])] = int(event["pid"])
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return found


def rank_sample(pid: int) -> "tuple[float, float] | None":
    """CPU seconds and resident bytes of a process; None if it has ended."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
        fields = text.rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / TICKS, int(fields[21]) * PAGE
    except (OSError, IndexError, ValueError):
        return None


def received_bytes(pids: "list[int]") -> float:
    """Bytes received on all interfaces of the network namespaces of the processes."""
    seen, total = set(), 0
    for pid in pids:
        try:
            namespace = Path(f"/proc/{pid}/ns/net").readlink()
            if namespace in seen:
                continue
            seen.add(namespace)
            text = Path(f"/proc/{pid}/net/dev").read_text(encoding="ascii", errors="replace")
            lines = [line.split(":")[1] for line in text.splitlines() if ":" in line]
            total += sum(int(line.split()[0]) for line in lines)
        except (OSError, IndexError, ValueError):
            continue
    return float(total)


def package_joules() -> "float | None":
    """Energy counter of the processors; None if it cannot be read."""
    total, known = 0.0, False
    for path in PACKAGES.glob("intel-rapl:[0-9]*/energy_uj"):
        if path.parent.name.count(":") > 1:  # a part of a package
            continue
        try:
            total, known = total + int(path.read_text(encoding="ascii")) / 1e6, True
        except (OSError, ValueError):
            continue
    return total if known else None


def sample(directory: Path, pids: dict[int, int], gpus: Gpus) -> dict[str, Any]:
    """Current values of all counters."""
    if not pids:
        pids.update(hello_pids(directory))
    ranks = {rank: usage for rank, pid in pids.items() if (usage := rank_sample(pid)) is not None}
    return {
        "time": time.time(),
        "cpu_seconds": {rank: usage[0] for rank, usage in ranks.items()},
        "memory_bytes": {rank: usage[1] for rank, usage in ranks.items()},
        "network_bytes": received_bytes(list(pids.values())),
        "package_joules": package_joules(),
        "gpus": gpus.sample(),
        "own_cpu_seconds": time.process_time(),
    }


def main() -> None:
    """Sample at each interval, and once more at the end."""
    directory, seconds = Path(sys.argv[1]), float(sys.argv[2])
    gpus, pids = Gpus(), dict[int, int]()
    with (directory / "samples.jsonl").open("w", encoding="utf-8") as file:
        ended = False
        while not ended:
            ready, _, _ = select.select([sys.stdin], [], [], seconds)
            ended = bool(ready) and not os.read(sys.stdin.fileno(), 1)
            if len(pids) < sum(1 for _ in directory.glob(EVENTS)):
                pids.clear()  # some had not written hello yet
            file.write(json.dumps(sample(directory, pids, gpus)) + "\n")
            file.flush()


if __name__ == "__main__":
    main()
