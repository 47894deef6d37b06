"""Evaluation of the devices of hosts: GPUs, NVLink, InfiniBand ports, MTU, GPUDirect, line rate."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from paceline.json_checks import is_number, is_object, is_text, list_of, optional, with_fields
from paceline.measurement.host_finding import HostFinding
from paceline.units import format_bandwidth, plural

LINE_SHARE = 0.6
"""Least share of the line rate that one TCP stream should reach; below it a link is suspect."""
ERRORS_ALLOWED = 10
"""Symbol errors and the like since boot; a bad cable has thousands."""
UNCORRECTED, SLOWDOWN = (
    "ecc.errors.uncorrected.volatile.total",
    "clocks_throttle_reasons.hw_slowdown",
)

_is_port = with_fields(
    {"name": is_text, "state": is_text, "gbit": optional(is_number), "errors": is_object}
)
is_devices = with_fields(
    {
        "gpus": list_of(is_object),
        "ports": list_of(_is_port),
        "nvlinks_down": optional(is_number),
        "mtu": optional(is_number),
        "link_mbit": optional(is_number),
        "unread": list_of(is_text),
    }
)

Hosts = Sequence[tuple[str, dict[str, Any]]]


def device_findings(
    names: Sequence[str], devices: Sequence[Any], sent: Sequence[float]
) -> list[HostFinding]:
    """Findings on the devices of each host; ``sent`` are best bandwidths of hosts (B/s)."""
    hosts = [(name, own) for name, own in zip(names, devices, strict=True) if is_devices(own)]
    if not hosts:
        return [HostFinding("devices", True, "not checked: no host reported its devices")]
    found = [
        *_of_each(hosts, "GPUs", _gpu_faults, "replace or reset the GPU; see 'nvidia-smi -q'"),
        *_of_each(hosts, "InfiniBand", _port_faults, "check cable, port and subnet manager"),
        *_equal(hosts, "GPUs", lambda own: len(own["gpus"]), "compare 'nvidia-smi -L'"),
        *_equal(hosts, "InfiniBand rates", _rates, "compare 'ibstat' of the hosts"),
        *_equal(hosts, "MTU", lambda own: own["mtu"], "set the same MTU on every host"),
        *_line_rates(dict(zip(names, sent, strict=True)), hosts),
        *_gpudirect(hosts),
    ]
    missing = Counter(what for _, own in hosts for what in own["unread"])
    if missing:
        texts = [f"{what} on {plural(count, 'host')}" for what, count in missing.items()]
        found.append(HostFinding("not checked", True, "; ".join(texts)))
    return found


def _gpu_faults(own: dict[str, Any]) -> list[str]:
    found = []
    for number, gpu in enumerate(own["gpus"]):
        errors = str(gpu.get(UNCORRECTED, ""))
        if errors.isdigit() and int(errors):
            found.append(f"GPU {number} has {plural(int(errors), 'uncorrected ECC error')}")
        if gpu.get(SLOWDOWN) == "Active":
            found.append(f"GPU {number} is slowed down by hardware (heat or power)")
        now, most = (gpu.get(f"pcie.link.width.{one}", "") for one in ("current", "max"))
        if now != most and str(now).isdigit():
            found.append(f"GPU {number} uses {now} of {most} PCIe lanes")
    if own["nvlinks_down"]:
        found.append(f"{plural(own['nvlinks_down'], 'NVLink')} inactive")
    return found


def _port_faults(own: dict[str, Any]) -> list[str]:
    found = [
        f"port {port['name']} is {port['state'] or 'in an unknown state'}"
        for port in own["ports"]
        if port["state"] != "ACTIVE"
    ]
    for port in own["ports"]:
        errors = {k: v for k, v in port["errors"].items() if is_number(v) and v > ERRORS_ALLOWED}
        found += [f"port {port['name']}: {name} {count:.0f}" for name, count in errors.items()]
    return found


def _rates(own: dict[str, Any]) -> tuple[float, ...]:
    return tuple(sorted(port["gbit"] or 0.0 for port in own["ports"]))


def _of_each(
    hosts: Hosts, name: str, faults: Callable[[dict[str, Any]], list[str]], remedy: str
) -> list[HostFinding]:
    wrong = [f"{host}: {fault}" for host, own in hosts for fault in faults(own)]
    return [HostFinding(name, False, "; ".join(wrong[:4]), remedy)] if wrong else []


def _equal(
    hosts: Hosts, name: str, value: Callable[[dict[str, Any]], Any], remedy: str
) -> list[HostFinding]:
    """One finding: the common value, or the hosts that differ from most others."""
    values = {host: value(own) for host, own in hosts}
    usual, _ = Counter(values.values()).most_common(1)[0]
    others = [f"{host}: {_shown(own)}" for host, own in values.items() if own != usual]
    if others:
        detail = f"{'; '.join(others[:4])}; most hosts: {_shown(usual)}"
        return [HostFinding(name, False, detail, remedy)]
    return [HostFinding(name, True, f"{_shown(usual)} on every host")] if usual else []


def _shown(value: Any) -> str:
    if isinstance(value, tuple):
        return ", ".join(f"{one:g} Gbit/s" for one in value) or "none"
    return "unknown" if value is None else f"{value:g}"


def _line_rates(sent: dict[str, float], hosts: Hosts) -> list[HostFinding]:
    """Compare measured bandwidth with the line rate of the interface."""
    known = [(host, own["link_mbit"] * 1e6 / 8) for host, own in hosts if own["link_mbit"]]
    known = [(host, rate) for host, rate in known if sent.get(host)]
    slow = [
        f"{host} sends {format_bandwidth(sent[host])}, {100 * sent[host] / rate:.0f} % of its line"
        for host, rate in known
        if sent[host] < LINE_SHARE * rate
    ]
    if slow:
        remedy = "check MTU, interrupts and switch; above 25 Gbit/s one TCP stream is CPU-bound"
        return [HostFinding("line rate", False, "; ".join(slow[:4]), remedy)]
    if not known:
        return []
    least = min(sent[host] / rate for host, rate in known)
    return [HostFinding("line rate", True, f"at least {100 * least:.0f} % of the line rate")]


def _gpudirect(hosts: Hosts) -> list[HostFinding]:
    needing = [(host, own) for host, own in hosts if own["gpus"] and own["ports"]]
    without = [host for host, own in needing if not own.get("gpudirect")]
    if without:
        remedy = "modprobe nvidia_peermem, or use a kernel with DMA-BUF and NCCL 2.12 or later"
        detail = f"GPUDirect RDMA module not loaded on {', '.join(without[:4])}"
        return [HostFinding("GPUDirect", False, detail, remedy)]
    return [HostFinding("GPUDirect", True, "module loaded on every host")] if needing else []
