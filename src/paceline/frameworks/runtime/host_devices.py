"""Devices of one host as its kernel and driver report them: GPUs, InfiniBand ports, interfaces.

Standard library only. A value that cannot be read is left out, and `unread` names what is missing.
"""

import os
import shutil
import subprocess
from typing import Any

INFINIBAND = "/sys/class/infiniband"
NETWORK = "/sys/class/net"
ERROR_COUNTERS = ("symbol_error", "link_error_recovery", "link_downed", "port_rcv_errors")
"""Counters of an InfiniBand port that stay near 0 on a good cable."""

GPU_FIELDS = (
    "name",
    "ecc.errors.uncorrected.volatile.total",
    "clocks_throttle_reasons.hw_slowdown",
    "pcie.link.width.current",
    "pcie.link.width.max",
)
DRIVER_SECONDS = 20.0


def devices(interface: str) -> "dict[str, Any]":
    """Return GPUs, ports and the interface of this host, and what could not be read."""
    unread: list[str] = []
    mbit = _number(os.path.join(NETWORK, interface, "speed"))  # -1 where it is unknown
    if mbit is None or mbit <= 0:
        mbit = None
        unread.append(f"line rate of {interface or 'the interface'}")
    return {
        "gpus": gpus(unread),
        "nvlinks_down": nvlinks_down(unread),
        "ports": ports(unread),
        "mtu": _number(os.path.join(NETWORK, interface, "mtu")),
        "link_mbit": mbit,
        "gpudirect": os.path.exists("/sys/module/nvidia_peermem")
        or os.path.exists("/sys/kernel/mm/memory_peers/nv_mem"),
        "unread": unread,
    }


def gpus(unread: "list[str]") -> "list[dict[str, str]]":
    """Return the `GPU_FIELDS` of each NVIDIA GPU."""
    output = _driver("--query-gpu=" + ",".join(GPU_FIELDS), "--format=csv,noheader,nounits")
    if output is None:
        unread.append("GPUs (no nvidia-smi)")
        return []
    rows = [[cell.strip() for cell in line.split(",")] for line in output.splitlines()]
    return [dict(zip(GPU_FIELDS, row)) for row in rows if len(row) == len(GPU_FIELDS)]  # noqa: B905


def nvlinks_down(unread: "list[str]") -> "int | None":
    """Return the number of inactive NVLinks; None without NVLink."""
    output = _driver("nvlink", "--status")
    if not output or "Link" not in output:
        unread.append("NVLink")
        return None
    return sum("inactive" in line.lower() for line in output.splitlines())


def ports(unread: "list[str]") -> "list[dict[str, Any]]":
    """Return state, rate (Gbit/s) and error counters of each InfiniBand or RoCE port."""
    found = []
    for device in _entries(INFINIBAND):
        for port in _entries(os.path.join(INFINIBAND, device, "ports")):
            folder = os.path.join(INFINIBAND, device, "ports", port)
            counters = {
                name: _number(os.path.join(folder, "counters", name)) for name in ERROR_COUNTERS
            }
            found.append(
                {
                    "name": f"{device}/{port}",
                    "state": _text(os.path.join(folder, "state")).partition(": ")[2],
                    "gbit": _number(os.path.join(folder, "rate")),
                    "errors": {name: value for name, value in counters.items() if value},
                }
            )
    if not found:
        unread.append("InfiniBand ports (none in sysfs)")
    return found


def _driver(*arguments: str) -> "str | None":
    program = shutil.which("nvidia-smi")
    if program is None:
        return None
    try:
        answer = subprocess.run(
            [program, *arguments], capture_output=True, text=True, timeout=DRIVER_SECONDS
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return answer.stdout if answer.returncode == 0 else None


def _entries(folder: str) -> "list[str]":
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(4096).strip()
    except OSError:
        return ""


def _number(path: str) -> "float | None":
    """Return the first number of a file, such as ``100 Gb/sec (4X EDR)``."""
    first = _text(path).partition(" ")[0]
    try:
        return float(first)
    except ValueError:
        return None
