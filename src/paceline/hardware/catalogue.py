"""The catalogue of devices, links and clusters, extended by the user's own files.

Names are matched ignoring case, ``-``, ``_``, ``.`` and spaces. A name of the form
``lab.toml:name`` is read from that file. Files listed in the environment variable
``PACELINE_HARDWARE`` (separated as in PATH) and files of installed packages are always included;
packages cannot redefine existing names. The catalogue's own files and a user's file have the same
form (docs/reference/hardware.md); errors name the file and the line::

    [device.my_gpu]
    vendor = "ACME"
    peak_flops = { fp32 = "15TFLOP/s" }
    source = "my data sheet"
"""

import dataclasses
import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, TypeVar

from paceline.errors import InputError, PacelineError
from paceline.file_errors import Problems
from paceline.file_keys import COUNT, NOT_IN_FILE, keys_of, quantity
from paceline.hardware.cluster import Cluster
from paceline.hardware.device import Device
from paceline.hardware.link import Link
from paceline.hardware.provenance import Confidence, Provenance, SourcedEntry
from paceline.located_toml import TomlTable, read_toml, shipped_toml
from paceline.naming import nearest, unknown_name
from paceline.plugins import Plugin, PluginError, PluginKind, plugins
from paceline.typed_toml import read_table, tables_in

ENVIRONMENT_VARIABLE = "PACELINE_HARDWARE"
T = TypeVar("T")


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


@dataclass
class HardwareFile:
    """Definitions of one file by name."""

    devices: dict[str, Device] = field(default_factory=dict)
    links: dict[str, Link] = field(default_factory=dict)
    clusters: dict[str, ClusterTable] = field(default_factory=dict)
    sources: dict[str, Provenance] = field(default_factory=dict)


def fold(name: str) -> str:
    """The spelling under which names are compared: ``A100-SXM4 80GB`` -> ``a100sxm480gb``."""
    return re.sub(r"[\s_.\-/]+", "", name.lower())


class Catalogue:
    """Devices, links and clusters of several files; later files override earlier ones."""

    def __init__(self, files: Iterable[HardwareFile]) -> None:
        self.devices: dict[str, Device] = {}
        self.links: dict[str, Link] = {}
        self._cluster_tables: dict[str, ClusterTable] = {}
        self._sources: dict[str, Provenance] = {}
        self._spellings: dict[str, dict[str, str]] = {"device": {}, "link": {}, "cluster": {}}
        for file in files:
            self._add(file)

    def device(self, name: str) -> Device:
        return self._find("device", name, self.devices)

    def link(self, name: str) -> Link:
        return self._find("link", name, self.links)

    def cluster(self, name: str) -> Cluster:
        """The cluster of that name or spelling; one node unless its file sets ``nodes``."""
        table = self._find("cluster", name, self._cluster_tables)
        return build_cluster(table, self.device, self.link)

    @property
    def clusters(self) -> dict[str, Cluster]:
        return {name: self.cluster(name) for name in self._cluster_tables}

    def extended_with(self, path: Path) -> "Catalogue":
        """This catalogue with the user's file ``path`` on top."""
        extended = Catalogue([])
        extended.devices = dict(self.devices)
        extended.links = dict(self.links)
        extended._cluster_tables = dict(self._cluster_tables)
        extended._sources = dict(self._sources)
        extended._spellings = {kind: dict(names) for kind, names in self._spellings.items()}
        root = read_toml(path)
        added = read_hardware(root, self._sources)
        extended._add(added)
        problems = Problems(root)
        for table in added.clusters.values():
            check_cluster(table, extended.device, extended.link, problems)
        problems.check()
        return extended

    def changed_in(self, other: "Catalogue") -> list[str]:
        """Names and spellings of this catalogue that ``other`` redefines."""
        tables: list[tuple[Mapping[str, object], Mapping[str, object]]] = [
            (self.devices, other.devices),
            (self.links, other.links),
            (self._cluster_tables, other._cluster_tables),
            *((names, other._spellings[kind]) for kind, names in self._spellings.items()),
        ]
        return [name for own, theirs in tables for name in own if own[name] is not theirs.get(name)]

    def _add(self, file: HardwareFile) -> None:
        self.devices |= file.devices
        self.links |= file.links
        self._cluster_tables |= file.clusters
        self._sources |= file.sources
        defined: dict[str, Mapping[str, SourcedEntry]] = {
            "device": file.devices,
            "link": file.links,
            "cluster": file.clusters,
        }
        for kind, entries in defined.items():
            spellings = self._spellings[kind]
            spellings |= {
                fold(alias): name for name, one in entries.items() for alias in one.aliases
            }
            spellings |= {fold(name): name for name in entries}

    def _find(self, kind: str, name: str, table: Mapping[str, T]) -> T:
        canonical = self._spellings[kind].get(fold(name))
        if canonical is None:
            raise unknown_name(
                kind,
                name,
                table,
                f"'paceline catalog {kind}s' lists all; define your own in a TOML file: "
                f"{kind} FILE.toml:NAME",
            )
        return table[canonical]


@lru_cache(maxsize=1)
def shipped() -> Catalogue:
    """The catalogue that comes with the package."""
    sources: dict[str, Provenance] = {}
    files = []
    for name in ("sources.toml", "devices.toml", "processors.toml", "links.toml", "clusters.toml"):
        file = read_hardware(shipped_toml("data", "hardware", name), sources)
        sources |= file.sources
        files.append(file)
    return Catalogue(files)


@lru_cache(maxsize=1)
def packaged() -> Catalogue:
    """The shipped catalogue and the files of installed packages."""
    result = shipped()
    for plugin, value in plugins(PluginKind.HARDWARE):
        result = _with_plugin(result, plugin, plugin.path(value))
    return result


def _with_plugin(known: Catalogue, plugin: Plugin, path: Path) -> Catalogue:
    try:
        extended = known.extended_with(path)
    except PacelineError as error:
        raise PluginError(plugin, error.message) from error
    if changed := known.changed_in(extended):
        raise PluginError(plugin, f"the name '{changed[0]}' is already defined")
    return extended


def catalogue() -> Catalogue:
    """The packaged catalogue, extended by the files of ``PACELINE_HARDWARE``."""
    listed = os.environ.get(ENVIRONMENT_VARIABLE, "")
    result = packaged()
    for path in filter(None, listed.split(os.pathsep)):
        result = result.extended_with(Path(path))
    return result


def device(name: str) -> Device:
    """The device called ``name`` (``a100_sxm_80gb``, ``A100-80GB``, ``lab.toml:my_gpu``)."""
    source, own_name = _split(name)
    return source.device(own_name)


def link(name: str) -> Link:
    """The link called ``name`` (``eth_10g``, ``10GbE``, ``lab.toml:my_net``)."""
    source, own_name = _split(name)
    return source.link(own_name)


def cluster(name: str) -> Cluster:
    """The cluster called ``name`` (``dgx-a100``, ``lab.toml:lab``, or a file with just one)."""
    if name.endswith(".toml"):
        names = list(read_toml(Path(name)).table("cluster").values)
        if len(names) != 1:
            catalogue().extended_with(Path(name))  # a misspelt [cluster.NAME] is the cause
            hint = f"select one: {name}:NAME" if names else "add a table [cluster.NAME]"
            raise InputError(f"{name} defines {len(names)} clusters", hint)
        name = f"{name}:{names[0]}"
    source, own_name = _split(name)
    return source.cluster(own_name)


def _split(name: str) -> tuple[Catalogue, str]:
    path, separator, own_name = name.rpartition(":")
    if separator and path.endswith(".toml"):
        return catalogue().extended_with(Path(path)), own_name
    return catalogue(), name


_LINK_SCOPES = {"intra": ("intra",), "inter": ("inter",), "host": ("host", "intra")}


KINDS = ("source", "device", "link", "cluster")
_COMMON = {name for (name,) in keys_of(SourcedEntry)}


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
