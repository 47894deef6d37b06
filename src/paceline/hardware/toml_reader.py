"""Reader of hardware TOML files; every value is checked, every error has file and line.

The catalogue's own files and a user's file have the same form (docs/reference/hardware.md)::

    [device.my_gpu]
    vendor = "ACME"
    peak_flops = { fp32 = "15TFLOP/s" }
    source = "my data sheet"
"""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from paceline import units
from paceline.errors import InputError
from paceline.hardware.cluster import Cluster
from paceline.hardware.device import PRECISIONS, Device
from paceline.hardware.link import SCOPES, SHARES, TECHNOLOGIES, Link
from paceline.hardware.provenance import Confidence, Provenance
from paceline.located_toml import TomlTable
from paceline.naming import nearest

KINDS = ("device", "link", "cluster", "source")
SLOWEST_FLOPS, SMALLEST_BYTES = 1e6, 1e6
"""Smaller values indicate a forgotten unit."""

_COMMON = ("aliases", "source", "sources", "notes")
_DEVICE_KEYS = (
    *("vendor", "kind", "peak_flops", "attainable_flops", "matrix_precisions", "memory"),
    *("memory_bandwidth", "compute_units", "launch_overhead", "power_watts", "year"),
    *("clock_mhz", "generation"),
)
_LINK_KEYS = (
    *("scope", "bandwidth", "per", "latency", "technology", "transport"),
    *("collective_bandwidth", "sums_in_switch"),
)
_CLUSTER_KEYS = (
    *("device", "devices_per_node", "nodes", "intra", "inter", "host", "nics_per_node"),
    *("oversubscription", "price_per_device_hour"),
)
_LINK_SCOPES = {"intra": ("intra",), "inter": ("inter",), "host": ("host", "intra")}
_SOURCE_KEYS = ("text", "date", "confidence")
_DEVICE_KINDS = ("gpu", "cpu", "cpu_socket", "manycore", "ipu", "npu")


@dataclass
class HardwareFile:
    """Definitions of one file; ``aliases`` maps other spellings to names, by kind."""

    devices: dict[str, Device] = field(default_factory=dict)
    links: dict[str, Link] = field(default_factory=dict)
    cluster_tables: dict[str, TomlTable] = field(default_factory=dict)
    aliases: dict[str, dict[str, str]] = field(
        default_factory=lambda: {"device": {}, "link": {}, "cluster": {}}
    )
    sources: dict[str, Provenance] = field(default_factory=dict)


def read_hardware(root: TomlTable, sources: Mapping[str, Provenance]) -> HardwareFile:
    """Everything that a file defines; ``sources`` are those known from other files.

    Clusters stay tables because they refer to devices and links of other files.
    """
    for kind in root.values:
        if kind not in KINDS:
            near = nearest(kind, KINDS, 1) or ["device"]
            root.fail(kind, f"unknown table '{kind}'", f"did you mean [{near[0]}.NAME]?")
    found = HardwareFile(sources=dict(sources))
    for name, table in root.table("source").tables().items():
        found.sources[name] = _source(table)
    for name, table in root.table("device").tables().items():
        found.devices[name] = _device(table, found.sources)
    for name, table in root.table("link").tables().items():
        found.links[name] = _link(table, found.sources)
    for name, table in root.table("cluster").tables().items():
        table.check_keys((*_CLUSTER_KEYS, *_COMMON), needed=("device", "devices_per_node"))
        found.cluster_tables[name] = table
    for kind, aliases in found.aliases.items():
        for name, table in root.table(kind).tables().items():
            aliases |= dict.fromkeys(table.names("aliases"), name)
    return found


def build_cluster(
    table: TomlTable,
    device: Callable[[str], Device],
    link: Callable[[str], Link],
    sources: Mapping[str, Provenance],
) -> Cluster:
    """The cluster of a table; ``device`` and ``link`` resolve names."""

    def named_link(key: str) -> Link | None:
        name = table.text_of(key)
        if not name:
            return None
        with table.locating(key):
            found = link(name)
        if found.scope not in _LINK_SCOPES[key]:
            scopes = " or ".join(_LINK_SCOPES[key])
            table.fail(
                key, f"{name} is a link of scope {found.scope}", f"use a link of scope {scopes}"
            )
        return found

    with table.locating("device"):
        its_device = device(table.text_of("device"))
    with table.locating(None):
        return Cluster(
            name=table.name,
            device=its_device,
            devices_per_node=table.count("devices_per_node", 1) or 1,
            nodes=table.count("nodes", 1) or 1,
            intra=named_link("intra"),
            inter=named_link("inter"),
            host=named_link("host"),
            nics_per_node=table.count("nics_per_node", 1) or 1,
            oversubscription=table.parsed("oversubscription", float) or 1.0,
            price_per_device_hour=table.parsed("price_per_device_hour", float, may_be_zero=True),
            notes=table.text_of("notes"),
            provenance=_provenance(table, sources, _CLUSTER_KEYS),
        )


def _source(table: TomlTable) -> Provenance:
    table.check_keys(_SOURCE_KEYS)
    confidence = table.text_of("confidence", "user", tuple(Confidence))
    return Provenance(table.text_of("text"), table.text_of("date"), Confidence(confidence))


def _rates(table: TomlTable, key: str) -> dict[str, float]:
    inner = table.table(key)
    inner.check_keys(PRECISIONS)
    return inner.quantities(_device_flops)


def _device_flops(value: str | float) -> float:
    """A device rate; very small values indicate a forgotten unit."""
    rate = units.parse_flops(value)
    if rate < SLOWEST_FLOPS:
        raise InputError(
            f"{value} FLOP/s is too small for a device", 'give a unit, e.g. "15 TFLOP/s"'
        )
    return rate


def _device_bytes(value: str | float) -> float:
    """A device's memory; very small values indicate a forgotten unit."""
    size = units.parse_bytes(value)
    if 0 < size < SMALLEST_BYTES:
        raise InputError(f"{value} bytes is too small for a device", 'give a unit, e.g. "24 GB"')
    return size


def _device(table: TomlTable, sources: Mapping[str, Provenance]) -> Device:
    table.check_keys((*_DEVICE_KEYS, *_COMMON))
    with table.locating("attainable_flops"):
        return Device(
            name=table.name,
            vendor=table.text_of("vendor"),
            kind=table.text_of("kind", "gpu", _DEVICE_KINDS),
            peak_flops=_rates(table, "peak_flops"),
            attainable_flops=_rates(table, "attainable_flops"),
            matrix_precisions=frozenset(table.names("matrix_precisions")),
            memory_bytes=table.parsed("memory", _device_bytes),
            memory_bandwidth=table.parsed("memory_bandwidth", units.parse_bandwidth),
            compute_units=table.count("compute_units"),
            clock_mhz=table.parsed("clock_mhz", float),
            launch_overhead_seconds=table.parsed(
                "launch_overhead", units.parse_seconds, may_be_zero=True
            ),
            power_watts=table.parsed("power_watts", float),
            year=table.count("year"),
            generation=table.text_of("generation"),
            notes=table.text_of("notes"),
            provenance=_provenance(table, sources, _DEVICE_KEYS),
        )


def _link(table: TomlTable, sources: Mapping[str, Provenance]) -> Link:
    table.check_keys((*_LINK_KEYS, *_COMMON), needed=("scope",))
    scope = table.text_of("scope", allowed=SCOPES)
    with table.locating("collective_bandwidth"):
        return Link(
            name=table.name,
            scope=scope,
            bandwidth=table.parsed("bandwidth", units.parse_bandwidth),
            per=table.text_of("per", "nic" if scope == "inter" else "device", SHARES),
            latency_seconds=table.parsed("latency", units.parse_seconds, may_be_zero=True),
            technology=table.text_of("technology", "other", TECHNOLOGIES),
            transport=table.text_of("transport", "", ("", "rdma", "tcp")),
            collective_bandwidth=table.parsed("collective_bandwidth", units.parse_bandwidth),
            sums_in_switch=table.flag("sums_in_switch"),
            notes=table.text_of("notes"),
            provenance=_provenance(table, sources, _LINK_KEYS),
        )


def _provenance(
    table: TomlTable, sources: Mapping[str, Provenance], keys: Sequence[str]
) -> dict[str, Provenance]:
    """Source of each number: the entry of ``sources`` that lists it, else ``source``."""
    default = _resolve(table, table.text_of("source", "your file"), sources)
    result = {key: default for key in table.values if key in keys}
    exceptions = table.table("sources")
    for source in exceptions.values:
        for key in exceptions.names(source):
            if key.split(".")[0] not in table.values:
                table.fail("sources", f"sources lists '{key}', which is not set here", "remove it")
            result[key] = _resolve(table, source, sources)
    return result


def _resolve(table: TomlTable, source: str, sources: Mapping[str, Provenance]) -> Provenance:
    known = sources.get(source)
    if known is None:
        return Provenance(source, "", Confidence.USER)
    return dataclasses.replace(known, source=known.source.replace("{name}", table.name))
