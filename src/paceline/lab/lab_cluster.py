"""Creates, inspects and removes labs; a lab only uses its own namespaces."""

import os
import select
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from paceline.errors import InputError
from paceline.lab.groups import create_group, end_processes, group_directories, remove_group
from paceline.lab.lab_record import (
    LabInUseError,
    LabRecord,
    lab_lock,
    lock_path,
    read_record,
    record_path,
    recorded_names,
    remove_record,
    state_directory,
    write_record,
)
from paceline.lab.link_shaping import has_netem, shape
from paceline.lab.machine import LabError, require_lab, run, works
from paceline.lab.settings import DEFAULT_NAME, LabSettings, validated_name

INTERFACE = "eth0"
NETWORK = "198.18.0"
"""An address range reserved for network benchmarks (RFC 2544); nothing outside routes it."""
NAMESPACES = Path("/run/netns")
LAUNCH_PREFIX = "launch-"
"""Prefix of the name of a lab that exists for one launch."""
READY_SECONDS = 20.0
ENDING_ROUNDS = 200

_QUIET = (
    "/proc/sys/net/ipv6/conf/all/disable_ipv6 1",
    "/proc/sys/net/ipv6/conf/default/disable_ipv6 1",
    "/proc/sys/net/ipv4/tcp_slow_start_after_idle 0",
    "/proc/sys/net/ipv4/tcp_no_metrics_save 1",
)
"""Makes launches comparable: no slow start after a pause, no TCP metrics kept between them."""


@dataclass(frozen=True)
class LabHost:
    """A host: its name in the lab, address, namespace and control groups."""

    name: str
    address: str
    namespace: str
    groups: tuple[str, ...]

    def enter(self) -> list[str]:
        """Return the prefix that runs a command on this host."""
        enter = str(Path(__file__).with_name("enter.py"))
        command = [sys.executable, "-I", "-S", enter]
        return [*command, str(NAMESPACES / self.namespace), ":".join(self.groups)]


@dataclass(frozen=True)
class Lab:
    """A lab that is up, or the rest of one."""

    record: LabRecord

    @property
    def name(self) -> str:
        return self.record.name

    @property
    def settings(self) -> LabSettings:
        return self.record.settings

    @property
    def hosts(self) -> tuple[LabHost, ...]:
        groups = self.record.groups or ((),) * len(self.record.hosts)
        return tuple(
            LabHost(f"h{number}", address_of(number), namespace, own)
            for number, (namespace, own) in enumerate(
                zip(self.record.hosts, groups, strict=True), 1
            )
        )

    def faults(self) -> tuple[str, ...]:
        """Return what is broken; empty for a lab that works."""
        found = []
        if not self.record.ready:
            found.append("its creation was interrupted")
        gone = [name for name in self.record.namespaces if not (NAMESPACES / name).exists()]
        if gone:
            found.append(f"missing namespace: {', '.join(gone)}")
        elif self.record.delay_by == "wire" and not _processes(self.record.switch):
            found.append("the process that forwards frames has ended")
        return tuple(found)

    def check(self) -> None:
        """Raise unless the lab works."""
        faults = self.faults()
        if faults:
            raise InputError(
                f"the lab '{self.name}' is incomplete: {faults[0]}",
                f"create it again with '{lab_command(self.name, self.settings)}'",
            )

    def command(self, hosts: int) -> str:
        """Return the command that creates this lab with another number of hosts."""
        return lab_command(self.name, replace(self.settings, hosts=hosts))

    def processes(self) -> int:
        return sum(len(_processes(name)) for name in self.record.hosts)


def address_of(number: int) -> str:
    return f"{NETWORK}.{number}"


def lab_up(settings: LabSettings, name: str = DEFAULT_NAME) -> Lab:
    """Create a lab after removing an existing one of that name, complete or not.

    Also remove the labs of launches whose runner was killed.
    """
    validated_name(name)
    require_lab()
    remove_abandoned()
    with lab_lock(name, exclusive=True):
        return create_locked(settings, name)


def create_locked(settings: LabSettings, name: str) -> Lab:
    """Create a lab whose exclusive lock the caller holds."""
    remove_locked(name)
    groups = () if settings.speed is None else group_directories(name, settings.hosts)
    record = LabRecord(
        name,
        settings,
        tuple(f"paceline-{name}-h{host}" for host in range(1, settings.hosts + 1)),
        f"paceline-{name}-switch",
        groups,
        made_at=datetime.now(UTC).isoformat(timespec="seconds"),
    )
    # Recorded before anything exists, so that the rest of a killed creation can be removed.
    write_record(record)
    try:
        record = _make(record)
    except BaseException:
        remove_locked(name)
        raise
    write_record(record)
    return Lab(record)


def lab_down(name: str = DEFAULT_NAME) -> bool:
    """Remove a lab with its processes and labs of killed runners; False if none was up."""
    validated_name(name)
    require_lab()
    remove_abandoned()
    with lab_lock(name, exclusive=True):
        return remove_locked(name)


def remove_abandoned() -> list[str]:
    """Remove the labs of launches whose runner is gone; return their names."""
    ended = []
    for name in recorded_names():
        if name.startswith(LAUNCH_PREFIX):
            with suppress(LabInUseError), lab_lock(name, exclusive=True):
                remove_locked(name)
                ended.append(name)
            if name in ended:
                lock_path(name).unlink(missing_ok=True)
    return ended


def lab_named(name: str = DEFAULT_NAME) -> Lab:
    """Return the lab of that name; otherwise raise."""
    record = read_record(validated_name(name))
    if record is None:
        raise InputError(
            f"no lab named '{name}' is up", f"create it with '{lab_command(name, LabSettings(4))}'"
        )
    return Lab(record)


def known_labs() -> list[Lab]:
    return [Lab(record) for record in map(read_record, recorded_names()) if record is not None]


def lab_command(name: str, settings: LabSettings) -> str:
    command = f"paceline lab up --hosts {settings.hosts}"
    if settings.link is not None:
        command += f" --link {8 * settings.link / 1e6:g}mbit"
    if settings.delay:
        command += f" --delay {settings.delay * 1e6:g}us"
    if settings.speed is not None:
        command += f" --speed {settings.speed:g}"
    return command if name == DEFAULT_NAME else f"{command} --name {name}"


def _make(record: LabRecord) -> LabRecord:
    """Create everything in a record; return the record with ``ready`` and ``delay_by``."""
    switch, settings = record.switch, record.settings
    run("ip", "-batch", "-", lines=[f"netns add {name}" for name in record.namespaces])
    ports = [f"p{number}" for number in range(1, settings.hosts + 1)]
    run(
        *("ip", "-batch", "-"),
        lines=[
            f"link add {INTERFACE} netns {host} type veth peer name {port} netns {switch}"
            for host, port in zip(record.hosts, ports, strict=True)
        ],
    )
    by_kernel = bool(settings.delay) and has_netem(switch, ports[0])
    by_wire = bool(settings.delay) and not by_kernel
    _write_settings(switch)
    bridge = [] if by_wire else ["link add bridge type bridge", "link set bridge up"]
    for port in ports:
        bridge.append(f"link set {port} up")
        if not by_wire:
            bridge.append(f"link set {port} master bridge")
    run("ip", "-n", switch, "-batch", "-", lines=bridge)
    for number, (host, port) in enumerate(zip(record.hosts, ports, strict=True), 1):
        _write_settings(host)
        run(
            *("ip", "-n", host, "-batch", "-"),
            lines=[
                "link set lo up",
                f"addr add {address_of(number)}/24 dev {INTERFACE}",
                f"link set {INTERFACE} up",
                # Independent of the machine's default (net.ipv4.tcp_congestion_control).
                f"route replace {NETWORK}.0/24 dev {INTERFACE} congctl cubic",
            ],
        )
        shape(host, INTERFACE, settings.link)
        shape(switch, port, settings.link, settings.delay if by_kernel else 0.0)
    for own in record.groups:
        for directory in own:
            create_group(directory, settings.speed or 1.0)
    if by_wire:
        _start_wire(record, ports)
    return replace(record, ready=True, delay_by="wire" if by_wire else "netem" if by_kernel else "")


def _write_settings(namespace: str) -> None:
    script = "".join(
        f"echo {value} > {path} 2>/dev/null; " for path, value in map(str.split, _QUIET)
    )
    run("nsenter", f"--net={NAMESPACES / namespace}", "sh", "-c", f"{script} true")


def _start_wire(record: LabRecord, ports: Sequence[str]) -> None:
    """Start the process that delays frames; it outlives this process and ends with the lab."""
    here = Path(__file__)
    python = [sys.executable, "-I", "-S"]
    command = [*python, str(here.with_name("enter.py")), str(NAMESPACES / record.switch), ""]
    command += [*python, str(here.with_name("wire.py")), str(record.settings.delay), *ports]
    log = state_directory() / f"{record.name}.wire.log"
    with log.open("wb") as errors:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            start_new_session=True,
            cwd="/",
        )
    assert process.stdin is not None and process.stdout is not None
    ready, _, _ = select.select([process.stdout], [], [], READY_SECONDS)
    if not ready or process.stdout.readline() != b"ready\n":
        process.kill()
        process.wait()
        lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        raise LabError(
            f"cannot delay frames: {lines[-1] if lines else 'wire.py did not start'}",
            "omit --delay",
        )
    process.stdin.write(b"go\n")
    process.stdin.close()
    process.stdout.close()
    process.returncode = 0  # not waited for: it outlives this process


def remove_locked(name: str) -> bool:
    """Remove everything in a lab's record, under the exclusive lock; False without a record."""
    record = read_record(name)
    if record is None:
        return False
    for _ in range(ENDING_ROUNDS):
        left = [process for space in record.namespaces for process in _processes(space)]
        if not [process for process in left if process != os.getpid()]:
            break
        end_processes(left)
        time.sleep(0.02)
    for namespace in record.namespaces:
        if (NAMESPACES / namespace).exists():
            run("ip", "netns", "del", namespace)
    for own in record.groups:
        for directory in own:
            remove_group(directory)
    remove_record(name)
    for ending in ("user", "wire.log"):
        record_path(name).with_suffix(f".{ending}").unlink(missing_ok=True)
    return True


def _processes(namespace: str) -> list[int]:
    if not (NAMESPACES / namespace).exists() or not works("ip", "netns", "pids", namespace):
        return []
    return [int(line) for line in run("ip", "netns", "pids", namespace).split()]
