"""Checks of several hosts before training: names, ports, versions, clocks, links."""

import re
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from paceline.errors import EnvironmentUnusableError, PacelineError
from paceline.frameworks.command import RUNTIME, SEARCH_PATH, interpreter
from paceline.frameworks.framework_registry import framework
from paceline.launch import Launcher, LaunchExit, LaunchRequest
from paceline.measurement.events import Event, last_event, read_events
from paceline.measurement.failures import failure_reason
from paceline.measurement.host_finding import HostFinding
from paceline.measurement.preflight_devices import device_findings
from paceline.measurement.run_job import events_path, launch_directory, write_job
from paceline.store import Store
from paceline.store.launch import new_launch_id
from paceline.units import format_bandwidth, format_seconds

DISTRIBUTIONS = ("torch", "numpy", "tensorflow", "jax", "horovod", "mpi4py")
PATIENCE_SECONDS = 10.0
STREAM_SECONDS = 0.5
LATE_CLOCK_SECONDS = 0.05
SLOW_SHARE = 0.5
"""A host is slow if its best link has less than this fraction of the median best bandwidth."""
MANY_TIMES = 4.0
"""A host is far if its shortest round trip exceeds this multiple of the median."""
LOOPBACK = "127."


@dataclass(frozen=True)
class HostLink:
    """Round trip (s) and bandwidth between two hosts, and the clock offset of ``high``.

    ``bytes_per_second`` is the bandwidth from ``high`` to ``low``, ``low_sends`` the reverse.
    ``error`` is the reason of a missing connection; all other fields are None then.
    """

    low: str
    high: str
    error: str = ""
    round_trip_seconds: float | None = None
    bytes_per_second: float | None = None
    low_sends: float | None = None
    clock_offset_seconds: float | None = None
    clock_error_seconds: float | None = None


_MEASURED = (
    *("error", "round_trip_seconds", "bytes_per_second"),
    *("clock_offset_seconds", "clock_error_seconds"),
)


@dataclass(frozen=True)
class Preflight:
    """Results of all checks, and every link."""

    hosts: tuple[str, ...]
    interface: str
    findings: tuple[HostFinding, ...]
    links: tuple[HostLink, ...]

    @property
    def works(self) -> bool:
        return all(finding.works for finding in self.findings)


def examine_hosts(
    store: Store, starter: Launcher, nodes: int | None = None, timeout_seconds: float = 120.0
) -> Preflight:
    """Start one process on each host of a launcher and check the hosts against each other."""
    names = tuple(host.name for host in starter.hosts()[:nodes])
    if not names:
        raise EnvironmentUnusableError(
            f"the launcher '{starter.name}' has no usable hosts", "see 'sinfo', or give --hosts"
        )
    starter.validate(len(names), 1)
    directory = launch_directory(store, f"hosts-{new_launch_id()}")
    job = {
        "hosts": names,
        "distributions": DISTRIBUTIONS,
        "patience_seconds": PATIENCE_SECONDS,
        "stream_seconds": STREAM_SECONDS,
    }
    write_job(directory / "job.json", job)
    worker = (interpreter(framework("torch-ddp")), str(RUNTIME / "host_check.py"))
    exited = starter.launch(
        LaunchRequest(
            lambda rank: (*worker, str(directory / "job.json"), str(events_path(directory, rank))),
            directory,
            timeout_seconds,
            nodes=len(names),
            variables=lambda rank: {SEARCH_PATH: str(RUNTIME)},
        )
    )
    ranks = [read_events(events_path(directory, rank)) for rank in range(len(names))]
    if any(last_event(events, "end") is None for events in ranks):
        raise _failure(names, exited, ranks)
    about = [last_event(events, "host") or {} for events in ranks]
    links = _links(names, ranks)
    interfaces = {host["interface"] for host in about}
    sends = [max((rate for a, _, rate in _ways(links) if a == name), default=0.0) for name in names]
    findings = (
        _reached(names, links),
        *_names(names, about),
        _interface(names, about),
        _versions(names, ranks),
        *_clocks(links),
        *_speeds(names, links),
        *device_findings(names, [last_event(events, "devices") for events in ranks], sends),
    )
    interface = interfaces.pop() if len(interfaces) == 1 else ""
    return Preflight(names, interface, findings, links)


def _failure(names: tuple[str, ...], exited: LaunchExit, ranks: list[list[Event]]) -> PacelineError:
    silent = [rank for rank, events in enumerate(ranks) if last_event(events, "hello") is None]
    rank = silent[0] if silent else exited.first_failed or 0
    did = "did not start" if silent else "did not finish its checks"
    hosts = dict(enumerate(names))
    reason = re.sub(
        r"\brank (\d+)\b",
        lambda found: f"rank {found[1]} ({hosts.get(int(found[1]), 'unknown host')})",
        failure_reason(exited, ranks),
    )
    return PacelineError(
        f"host {names[rank]} {did}: {reason}",
        "see the log; check that interpreter and directory have the same path on every host",
    )


def _links(names: tuple[str, ...], ranks: list[list[Event]]) -> tuple[HostLink, ...]:
    """Every pair as measured by the higher rank, with the bandwidth from the lower one."""
    pairs = {
        (rank, event["other"]): event
        for rank, events in enumerate(ranks)
        for event in events
        if event["event"] == "pair"
    }
    found = []
    for (rank, other), event in sorted(pairs.items()):
        if other < rank:
            measured: dict[str, Any] = {key: event[key] for key in _MEASURED if key in event}
            back = pairs.get((other, rank), {})
            error = measured.pop("error", "") or back.get("error", "")
            sent = back.get("bytes_per_second")
            found.append(HostLink(names[other], names[rank], error, low_sends=sent, **measured))
    return tuple(found)


def _reached(names: tuple[str, ...], links: tuple[HostLink, ...]) -> HostFinding:
    broken = [link for link in links if link.error]
    if not broken:
        return HostFinding("ports", True, f"every pair of the {len(names)} hosts connects")
    problems = "; ".join(
        f"{link.high} cannot reach {link.low}: {link.error}" for link in broken[:4]
    )
    return HostFinding(
        "ports", False, problems, "check firewalls and routes; open TCP ports 1024 and above"
    )


def _names(names: tuple[str, ...], about: list[Event]) -> list[HostFinding]:
    wrong = []
    for here, own in zip(names, about, strict=True):
        for name, other in zip(own["names"], about, strict=True):
            if not name["address"]:
                wrong.append(f"'{name['name']}' does not resolve on {here}")
            elif name["address"].startswith(LOOPBACK) and not other["address"].startswith(LOOPBACK):
                wrong.append(f"'{name['name']}' resolves to loopback ({name['address']}) on {here}")
            elif name["address"] != other["address"] and not name["address"].startswith(LOOPBACK):
                wrong.append(
                    f"'{name['name']}' resolves to {name['address']} on {here}, but its address is "
                    f"{other['address']}"
                )
    if wrong:
        more = f"; and {len(wrong) - 3} more" if len(wrong) > 3 else ""
        remedy = "fix /etc/hosts or DNS, or give hosts by address"
        return [HostFinding("names", False, "; ".join(wrong[:3]) + more, remedy)]
    nameless = sum(1 for own in about for name in own["names"] if not name["reverse"])
    back = "" if not nameless else f"; reverse lookups that failed: {nameless} (rarely needed)"
    return [HostFinding("names", True, f"every name has the same address on every host{back}")]


def _interface(names: tuple[str, ...], about: list[Event]) -> HostFinding:
    """Network interface of each host, and variables that select another one."""
    own = {name: host["interface"] for name, host in zip(names, about, strict=True)}
    overrides = {
        (name, variable, value)
        for name, host in zip(names, about, strict=True)
        for variable, value in host["variables"].items()
        if value.lstrip("=^") not in (host["interface"], "")
    }
    settings = ", ".join(f"{name}: {interface}" for name, interface in own.items())
    if overrides:
        name, variable, value = min(overrides)
        return HostFinding(
            "interface",
            False,
            f"{variable} is '{value}' on {name}, but traffic uses {own[name]}",
            f"export {variable}={own[name]}",
        )
    if len(set(own.values())) > 1:
        return HostFinding("interface", True, f"interfaces differ by host: {settings}")
    interface = next(iter(own.values()))
    pinned = f"GLOO_SOCKET_IFNAME={interface} NCCL_SOCKET_IFNAME={interface}"
    return HostFinding("interface", True, f"{interface} on every host; to pin it, export {pinned}")


def _versions(names: tuple[str, ...], ranks: list[list[Event]]) -> HostFinding:
    versions = [(last_event(events, "hello") or {"versions": {}})["versions"] for events in ranks]
    wanted = {key: value for key, value in versions[0].items() if key != "system"}
    for name, own in zip(names, versions, strict=True):
        for key, value in wanted.items():
            if own.get(key) != value:
                return HostFinding(
                    "versions",
                    False,
                    f"{key} is {own.get(key) or 'missing'} on {name} and {value or 'missing'} on "
                    f"{names[0]}",
                    "install the same environment on every host, or share it",
                )
    found = ", ".join(f"{key} {value}" for key, value in wanted.items() if value)
    return HostFinding("versions", True, found)


def _clocks(links: tuple[HostLink, ...]) -> list[HostFinding]:
    known = [link for link in links if link.clock_offset_seconds is not None]
    if not known:
        return []
    worst = max(known, key=lambda link: abs(link.clock_offset_seconds or 0.0))
    offset, error = abs(worst.clock_offset_seconds or 0.0), worst.clock_error_seconds or 0.0
    detail = (
        f"clocks of {worst.low} and {worst.high} differ by {format_seconds(offset)} "
        f"± {format_seconds(error)}"
    )
    late = offset - error > LATE_CLOCK_SECONDS
    return [
        HostFinding(
            "clocks", not late, detail, "synchronise the clocks with NTP or chrony" if late else ""
        )
    ]


def _ways(links: Sequence[HostLink]) -> list[tuple[str, str, float]]:
    """Sender, receiver and bandwidth of each measured direction."""
    ways = [(link.high, link.low, link.bytes_per_second) for link in links]
    ways += [(link.low, link.high, link.low_sends) for link in links]
    return [(sender, receiver, rate) for sender, receiver, rate in ways if rate]


def _speeds(names: tuple[str, ...], links: tuple[HostLink, ...]) -> list[HostFinding]:
    """Median link, and hosts that send, receive or respond more slowly than the others."""
    known = [link for link in links if link.bytes_per_second and link.round_trip_seconds]
    if not known:
        return []
    ways = _ways(known)
    rate = statistics.median(rate for _, _, rate in ways)
    trip = statistics.median(link.round_trip_seconds or 0.0 for link in known)
    detail = f"median {format_bandwidth(rate)}, round trip {format_seconds(trip)}"
    found = [HostFinding("links", True, detail)]
    if len(names) < 3:  # with one link, neither of its hosts can be blamed
        return found
    sends = {name: max((r for a, _, r in ways if a == name), default=rate) for name in names}
    takes = {name: max((r for _, b, r in ways if b == name), default=rate) for name in names}
    for verb, best in (("sends", sends), ("receives", takes)):
        for name, own in best.items():
            if own < SLOW_SHARE * statistics.median(best.values()):
                detail = f"{name} {verb} {format_bandwidth(own)} at best"
                remedy = f"check the NIC and the cable of {name}"
                found.append(HostFinding("slow host", False, detail, remedy))
    nearest = {
        name: min(
            (link.round_trip_seconds or 0.0 for link in known if name in (link.low, link.high)),
            default=trip,
        )
        for name in names
    }
    for name, own in nearest.items():
        if own > MANY_TIMES * statistics.median(nearest.values()):
            detail = f"the shortest round trip to {name} takes {format_seconds(own)}"
            remedy = f"check the load and the network path of {name}"
            found.append(HostFinding("slow host", False, detail, remedy))
    return found
