"""Lists of devices, links, clusters, libraries and frameworks."""

from collections.abc import Callable, Iterable
from dataclasses import asdict
from typing import Any

from paceline.catalog.hardware_facts import (
    cluster_facts,
    describe_input,
    describe_policy,
    device_facts,
    link_facts,
)
from paceline.catalog.listing import Listing
from paceline.hardware import Cluster, Device, Link
from paceline.hardware.catalogue import Catalogue
from paceline.predictor.comm.library import Library, library, library_names
from paceline.predictor.framework_profiles import FrameworkProfile, framework, framework_names
from paceline.render.table import Column, Table

_TERA, _GIGA = 1e-12, 1e-9
EXAMPLES = {
    "devices": "v100",
    "links": "ib_edr_100g",
    "clusters": "dgx-a100",
    "libraries": "nccl",
    "frameworks": "torch-ddp",
}
"""One name of each list."""


def hardware_list(kind: str, known: Catalogue) -> Listing:
    """All devices, links, clusters, libraries or frameworks."""
    entries: Iterable[dict[str, Any]]
    match kind:
        case "devices":
            table, entries = (
                _devices(known.devices.values()),
                map(device_facts, known.devices.values()),
            )
        case "links":
            table, entries = _links(known.links.values()), map(link_facts, known.links.values())
        case "clusters":
            found = list(known.clusters.values())
            table, entries = _clusters(found), map(cluster_facts, found)
        case "libraries":
            libraries = [library(name) for name in library_names()]
            table, entries = _libraries(libraries), map(asdict, libraries)
        case _:
            profiles = [framework(name) for name in framework_names()]
            table, entries = _frameworks(profiles), map(asdict, profiles)
    more = (f"paceline catalog {kind} {EXAMPLES[kind]}", "paceline predict --help")
    return Listing(kind, tuple(entries), (table,), more)


def _devices(devices: Iterable[Device]) -> Table:
    def rate(name: str) -> tuple[Column, Callable[[Device], float | None]]:
        return Column(name, "TFLOP/s", scale=_TERA), lambda one: one.peak_flops.get(name)

    return Table.of(
        devices,
        (Column("device"), lambda one: one.name),
        *map(rate, ("fp32", "tf32", "fp16", "bf16", "fp8")),
        (Column("memory", "GB", scale=_GIGA, decimals=0), lambda one: one.memory_bytes),
        (Column("bandwidth", "GB/s", scale=_GIGA, decimals=0), lambda one: one.memory_bandwidth),
        note="Dense peaks; unknown values are empty. Give a NAME for the sources.",
    )


def _links(links: Iterable[Link]) -> Table:
    reached = Column("collective bandwidth", "GB/s", scale=_GIGA, decimals=0)
    return Table.of(
        links,
        (Column("link"), lambda one: one.name),
        (Column("scope"), lambda one: one.scope),
        (Column("technology"), lambda one: f"{one.technology} {one.transport}".strip()),
        (Column("bandwidth", "GB/s", scale=_GIGA), lambda one: one.bandwidth),
        (Column("per"), lambda one: one.per),
        (Column("latency", "us", scale=1e6), lambda one: one.latency_seconds),
        (reached, lambda one: one.collective_bandwidth),
        note="Unidirectional bandwidth. Latency of wire and adapter, without that of libraries.",
    )


def _clusters(clusters: Iterable[Cluster]) -> Table:
    return Table.of(
        clusters,
        (Column("cluster"), lambda one: one.name),
        (Column("device"), lambda one: one.device.name),
        (Column("devices/node", decimals=0), lambda one: float(one.devices_per_node)),
        (Column("intra-node link"), lambda one: one.intra.name if one.intra else None),
        (Column("inter-node link"), lambda one: one.inter.name if one.inter else None),
        (Column("NICs", decimals=0), lambda one: float(one.nics_per_node)),
    )


def _libraries(libraries: Iterable[Library]) -> Table:
    def algorithms(one: Library) -> str:
        found = (v.algorithm for v in one.variants if v.operation == "all_reduce")
        return ", ".join(dict.fromkeys(found))

    return Table.of(
        libraries,
        (Column("library"), lambda one: one.name),
        (Column("all-reduce algorithms"), algorithms),
        (Column("source"), lambda one: one.source),
    )


def _frameworks(frameworks: Iterable[FrameworkProfile]) -> Table:
    columns = (Column("framework"), Column("title"), Column("gradients"), Column("input pipeline"))
    rows = tuple(
        (one.name, one.title, describe_policy(one), describe_input(one)) for one in frameworks
    )
    return Table(columns, rows)
