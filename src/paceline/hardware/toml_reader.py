"""Reader of hardware TOML files; errors name the file and the line.

The catalogue's own files and a user's file have the same form (docs/reference/hardware.md)::

    [device.my_gpu]
    vendor = "ACME"
    peak_flops = { fp32 = "15TFLOP/s" }
    source = "my data sheet"
"""

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from paceline.errors import InputError
from paceline.file_errors import Problems
from paceline.file_keys import COUNT, NOT_IN_FILE, keys_of, quantity
from paceline.hardware.cluster import Cluster
from paceline.hardware.device import Device
from paceline.hardware.link import Link
from paceline.hardware.provenance import Confidence, Provenance, SourcedEntry
from paceline.located_toml import TomlTable
from paceline.naming import nearest
from paceline.typed_toml import read_table, tables_in

_LINK_SCOPES = {"intra": ("intra",), "inter": ("inter",), "host": ("host", "intra")}


@dataclass(frozen=True)
class ClusterTable(SourcedEntry):
    """A cluster with the names of its device and links."""

    name: Annotated[str, NOT_IN_FILE]
    device: str
    devices_per_node: Annotated[int, COUNT]
    nodes: Annotated[int, COUNT] = 1
    intra: str = ""
    inter: str = ""
    host: str = ""
    nics_per_node: Annotated[int, COUNT] = 1
    oversubscription: Annotated[float, quantity(float)] = 1.0
    price_per_device_hour: Annotated[float | None, quantity(float, may_be_zero=True)] = None
    machine: Annotated[int | None, COUNT] = None


KINDS = ("source", "device", "link", "cluster")
_COMMON = {name for (name,) in keys_of(SourcedEntry)}


@dataclass
class HardwareFile:
    """Definitions of one file by name."""

    devices: dict[str, Device] = field(default_factory=dict)
    links: dict[str, Link] = field(default_factory=dict)
    clusters: dict[str, ClusterTable] = field(default_factory=dict)
    sources: dict[str, Provenance] = field(default_factory=dict)


def read_hardware(root: TomlTable, known_sources: Mapping[str, Provenance]) -> HardwareFile:
    """Everything that a file defines; raises one error with all problems of the file.

    ``known_sources`` are those of other files. Clusters stay tables because they refer to devices
    and links of other files.
    """
    problems = Problems(root)
    for kind in root.values:
        if kind not in KINDS:
            near = nearest(kind, KINDS, 1) or ["device"]
            problems.add([kind], f"unknown table '{kind}'", f"did you mean [{near[0]}.NAME]?")
    found = HardwareFile(sources=dict(known_sources))
    for table in tables_in(root, "source", problems):
        if (source := read_table(table, Provenance, problems)) is not None:
            found.sources[table.name] = source
    for table in tables_in(root, "device", problems):
        provenance = _provenance(table, found.sources, problems)
        device = read_table(table, Device, problems, name=table.name, provenance=provenance)
        if device is not None:
            found.devices[table.name] = device
    for table in tables_in(root, "link", problems):
        own: dict[str, Any] = {"provenance": _provenance(table, found.sources, problems)}
        if table.values.get("scope") == "inter" and "per" not in table.values:
            own["per"] = "nic"
        if (link := read_table(table, Link, problems, name=table.name, **own)) is not None:
            found.links[table.name] = link
    for table in tables_in(root, "cluster", problems):
        provenance = _provenance(table, found.sources, problems)
        cluster = read_table(table, ClusterTable, problems, name=table.name, provenance=provenance)
        if cluster is not None:
            found.clusters[table.name] = cluster
    problems.check()
    return found


def build_cluster(
    table: ClusterTable, device: Callable[[str], Device], link: Callable[[str], Link]
) -> Cluster:
    """The cluster of a table; ``device`` and ``link`` resolve names."""
    values = {one.name: getattr(table, one.name) for one in dataclasses.fields(table)}
    links = {key: _link(table, key, link) for key in _LINK_SCOPES}
    return Cluster(**{**values, **links, "device": device(table.device)})


def check_cluster(
    table: ClusterTable,
    device: Callable[[str], Device],
    link: Callable[[str], Link],
    problems: Problems,
) -> None:
    """Add the errors of a cluster: unknown names, links of another scope, missing links."""
    before = len(problems)
    with problems.at("cluster", table.name, "device"):
        device(table.device)
    for key in _LINK_SCOPES:
        with problems.at("cluster", table.name, key):
            _link(table, key, link)
    if len(problems) == before:
        with problems.at("cluster", table.name):
            build_cluster(table, device, link)


def _link(table: ClusterTable, key: str, link: Callable[[str], Link]) -> Link | None:
    name = getattr(table, key)
    if not name:
        return None
    found, scopes = link(name), _LINK_SCOPES[key]
    if found.scope not in scopes:
        raise InputError(
            f"{name} is a link of scope {found.scope}", f"use a link of scope {' or '.join(scopes)}"
        )
    return found


def _provenance(
    table: TomlTable, sources: Mapping[str, Provenance], problems: Problems
) -> dict[str, Provenance]:
    """Source of each number: the entry of ``sources`` that lists it, else ``source``."""
    default = _resolve(table, table.values.get("source", SourcedEntry.source), sources)
    result = {key: default for key in table.values if key not in _COMMON}
    listed = table.values.get("sources")
    for source, keys in listed.items() if isinstance(listed, dict) else ():
        for key in keys if isinstance(keys, list) else ():
            if str(key).split(".")[0] not in table.values:
                message = f"sources lists {key!r}, which is not set here"
                problems.add((*table.path, "sources"), message, "remove it")
            result[str(key)] = _resolve(table, source, sources)
    return result


def _resolve(table: TomlTable, source: str, sources: Mapping[str, Provenance]) -> Provenance:
    known = sources.get(source) if isinstance(source, str) else None
    if known is None:
        return Provenance(source, "", Confidence.USER)
    return dataclasses.replace(known, source=known.source.replace("{name}", table.name))
