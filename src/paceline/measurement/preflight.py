"""A look at several hosts before anything trains on them: names, ports, versions, clocks, links."""

import re
import statistics
from dataclasses import asdict, dataclass
from typing import Any

from paceline.errors import PacelineError
from paceline.frameworks.command import RUNTIME, SEARCH_PATH, interpreter
from paceline.frameworks.registry import framework
from paceline.launch import Launcher, LaunchExit, LaunchRequest
from paceline.measurement.events import Event, only, read_events
from paceline.measurement.failures import failure_reason
from paceline.measurement.run import events_path, launch_directory, new_launch_id, write_job
from paceline.store import Store
from paceline.units import format_bandwidth, format_seconds

DISTRIBUTIONS = ("torch", "numpy", "tensorflow", "jax", "horovod", "mpi4py")
PATIENCE_SECONDS = 10.0
STREAM_SECONDS = 0.5
LATE_CLOCK_SECONDS = 0.05
SLOW_SHARE = 0.5
"""A host whose best link has less than this part of the bandwidth of others' best is slow."""
MANY_TIMES = 4.0
"""One whose quickest round trip takes so many of others' is far."""
LOOPBACK = "127."


@dataclass(frozen=True)
class HostLink:
    """Two hosts: seconds there and back, and what ``high``'s clock is behind.

    ``bytes_per_second`` is what ``high`` sends to ``low``, ``low_sends`` the other way. ``error``
    says why they have no connection; the rest is None then.
    """

    low: str
    high: str
    error: str = ""
    round_trip_seconds: float | None = None
    bytes_per_second: float | None = None
    low_sends: float | None = None
    clock_offset_seconds: float | None = None
    clock_error_seconds: float | None = None


_TOLD = (
    *("error", "round_trip_seconds", "bytes_per_second"),
    *("clock_offset_seconds", "clock_error_seconds"),
)


@dataclass(frozen=True)
class HostFinding:
    """Something of hosts that is right or not; ``remedy`` says what would change it."""

    name: str
    works: bool
    detail: str
    remedy: str = ""


@dataclass(frozen=True)
class Preflight:
    """What was found of hosts: findings to read, and every link."""

    hosts: tuple[str, ...]
    interface: str
    findings: tuple[HostFinding, ...]
    links: tuple[HostLink, ...]

    @property
    def works(self) -> bool:
        """Whether nothing is wrong."""
        return all(finding.works for finding in self.findings)

    def to_json(self) -> dict[str, Any]:
        """The report as JSON values."""
        return asdict(self)


def examine_hosts(
    store: Store, starter: Launcher, nodes: int | None = None, timeout_seconds: float = 120.0
) -> Preflight:
    """Start one process on each host that a launcher knows, and let them look at each other."""
    names = tuple(host.name for host in starter.hosts()[:nodes])
    starter.validate(len(names), 1)
    directory = launch_directory(store, f"hosts-{new_launch_id()}")
    job = {
        "hosts": names,
        "distributions": DISTRIBUTIONS,
        "patience_seconds": PATIENCE_SECONDS,
        "stream_seconds": STREAM_SECONDS,
    }
    write_job(directory / "job.json", job)
    words = (interpreter(framework("torch-ddp")), str(RUNTIME / "host_check.py"))
    exited = starter.launch(
        LaunchRequest(
            lambda rank: (*words, str(directory / "job.json"), str(events_path(directory, rank))),
            directory,
            timeout_seconds,
            nodes=len(names),
            variables=lambda rank: {SEARCH_PATH: str(RUNTIME)},
        )
    )
    ranks = [read_events(events_path(directory, rank)) for rank in range(len(names))]
    if any(only(events, "end") is None for events in ranks):
        raise _failure(names, exited, ranks)
    about = [only(events, "host") or {} for events in ranks]
    links = _links(names, ranks)
    interfaces = {one["interface"] for one in about}
    findings = (
        _reached(names, links),
        *_names(names, about),
        _interface(names, about),
        _versions(names, ranks),
        *_clocks(links),
        *_speeds(names, links),
    )
    interface = interfaces.pop() if len(interfaces) == 1 else ""
    return Preflight(names, interface, findings, links)


def _failure(names: tuple[str, ...], exited: LaunchExit, ranks: list[list[Event]]) -> PacelineError:
    silent = [rank for rank, events in enumerate(ranks) if only(events, "hello") is None]
    rank = silent[0] if silent else exited.first_failed or 0
    did = "did not start" if silent else "did not end its checks"
    hosts = dict(enumerate(names))
    reason = re.sub(
        r"\brank (\d+)\b",
        lambda found: f"rank {found[1]} ({hosts.get(int(found[1]), 'no host')})",
        failure_reason(exited, ranks),
    )
    return PacelineError(
        f"host {names[rank]} {did}: {reason}",
        "the log says more; is the interpreter at the same path there, and the directory shared?",
    )


def _links(names: tuple[str, ...], ranks: list[list[Event]]) -> tuple[HostLink, ...]:
    """Every pair, as the higher rank measured it, with what the lower one sent."""
    pairs = {
        (rank, event["other"]): event
        for rank, events in enumerate(ranks)
        for event in events
        if event["event"] == "pair"
    }
    found = []
    for (rank, other), event in sorted(pairs.items()):
        if other < rank:
            told: dict[str, Any] = {key: event[key] for key in _TOLD if key in event}
            back = pairs.get((other, rank), {})
            error = told.pop("error", "") or back.get("error", "")
            sent = back.get("bytes_per_second")
            found.append(HostLink(names[other], names[rank], error, low_sends=sent, **told))
    return tuple(found)


def _reached(names: tuple[str, ...], links: tuple[HostLink, ...]) -> HostFinding:
    broken = [link for link in links if link.error]
    if not broken:
        return HostFinding("ports", True, f"every pair of {len(names)} hosts has a connection")
    told = "; ".join(f"{link.high} does not reach {link.low}: {link.error}" for link in broken[:4])
    return HostFinding(
        "ports", False, told, "a firewall, or another network? open TCP ports 1024 and above"
    )


def _names(names: tuple[str, ...], about: list[Event]) -> list[HostFinding]:
    """Names that mean nothing or something else on some host."""
    wrong = []
    for here, own in zip(names, about, strict=True):
        for told, other in zip(own["names"], about, strict=True):
            if not told["address"]:
                wrong.append(f"'{told['name']}' has no address on {here}")
            elif told["address"].startswith(LOOPBACK) and not other["address"].startswith(LOOPBACK):
                wrong.append(f"'{told['name']}' is loopback ({told['address']}) on {here}")
            elif told["address"] != other["address"] and not told["address"].startswith(LOOPBACK):
                wrong.append(
                    f"'{told['name']}' is {told['address']} on {here}, but uses {other['address']}"
                )
    if wrong:
        more = f"; and {len(wrong) - 3} more" if len(wrong) > 3 else ""
        remedy = "mend /etc/hosts or the name server, or name hosts by address"
        return [HostFinding("names", False, "; ".join(wrong[:3]) + more, remedy)]
    nameless = sum(1 for own in about for told in own["names"] if not told["reverse"])
    back = "" if not nameless else f"; {nameless} addresses have no name, which few programs need"
    return [HostFinding("names", True, f"every name means the same everywhere{back}")]


def _interface(names: tuple[str, ...], about: list[Event]) -> HostFinding:
    """Which interface libraries should use, and whether variables say another."""
    own = {name: one["interface"] for name, one in zip(names, about, strict=True)}
    told = {
        (name, variable, value)
        for name, one in zip(names, about, strict=True)
        for variable, value in one["variables"].items()
        if value.lstrip("=^") not in (one["interface"], "")
    }
    settings = ", ".join(f"{name}: {interface}" for name, interface in own.items())
    if told:
        name, variable, value = min(told)
        return HostFinding(
            "interface",
            False,
            f"{variable} is '{value}' on {name}, where messages leave by {own[name]}",
            f"export {variable}={own[name]}",
        )
    if len(set(own.values())) > 1:
        return HostFinding("interface", True, f"hosts use different ones: {settings}")
    interface = next(iter(own.values()))
    words = f"GLOO_SOCKET_IFNAME={interface} NCCL_SOCKET_IFNAME={interface}"
    return HostFinding("interface", True, f"{interface} on every host; to be sure, export {words}")


def _versions(names: tuple[str, ...], ranks: list[list[Event]]) -> HostFinding:
    versions = [(only(events, "hello") or {"versions": {}})["versions"] for events in ranks]
    wanted = {key: value for key, value in versions[0].items() if key != "system"}
    for name, own in zip(names, versions, strict=True):
        for key, value in wanted.items():
            if own.get(key) != value:
                return HostFinding(
                    "versions",
                    False,
                    f"{key} is {own.get(key) or 'missing'} on {name} and {value or 'missing'} on "
                    f"{names[0]}",
                    "install the same environment everywhere, or share it",
                )
    found = ", ".join(f"{key} {value}" for key, value in wanted.items() if value)
    return HostFinding("versions", True, found)


def _clocks(links: tuple[HostLink, ...]) -> list[HostFinding]:
    known = [link for link in links if link.clock_offset_seconds is not None]
    if not known:
        return []
    worst = max(known, key=lambda link: abs(link.clock_offset_seconds or 0.0))
    offset, error = abs(worst.clock_offset_seconds or 0.0), worst.clock_error_seconds or 0.0
    words = (
        f"clocks of {worst.low} and {worst.high} differ by {format_seconds(offset)} "
        f"± {format_seconds(error)}"
    )
    late = offset - error > LATE_CLOCK_SECONDS
    return [HostFinding("clocks", not late, words, "start NTP or chrony there" if late else "")]


def _speeds(names: tuple[str, ...], links: tuple[HostLink, ...]) -> list[HostFinding]:
    """The usual link, and hosts that send, receive or answer more slowly than the others do."""
    known = [link for link in links if link.bytes_per_second and link.round_trip_seconds]
    if not known:
        return []
    ways = [(link.high, link.low, link.bytes_per_second or 0.0) for link in known]
    ways += [(link.low, link.high, link.low_sends) for link in known if link.low_sends]
    rate = statistics.median(rate for _, _, rate in ways)
    trip = statistics.median(link.round_trip_seconds or 0.0 for link in known)
    words = f"usually {format_bandwidth(rate)}, {format_seconds(trip)} there and back"
    found = [HostFinding("links", True, words)]
    if len(names) < 3:
        return found
    sends = {name: max((r for a, _, r in ways if a == name), default=rate) for name in names}
    takes = {name: max((r for _, b, r in ways if b == name), default=rate) for name in names}
    for verb, best in (("sends", sends), ("receives", takes)):
        for name, own in best.items():
            if own < SLOW_SHARE * statistics.median(best.values()):
                words = f"{name} {verb} {format_bandwidth(own)} at best"
                remedy = f"look at the network card and cable of {name}"
                found.append(HostFinding("slow host", False, words, remedy))
    nearest = {
        name: min(
            (link.round_trip_seconds or 0.0 for link in known if name in (link.low, link.high)),
            default=trip,
        )
        for name in names
    }
    for name, own in nearest.items():
        if own > MANY_TIMES * statistics.median(nearest.values()):
            words = f"nothing comes back from {name} in less than {format_seconds(own)}"
            found.append(HostFinding("slow host", False, words, f"is {name} busy, or far away?"))
    return found
