"""Lists of the catalogue: ``paceline hardware devices``, links, clusters and others."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from paceline.catalog.hardware_facts import (
    cluster_facts,
    describe_input,
    describe_policy,
    device_facts,
    link_facts,
)
from paceline.hardware import Cluster, Device, Link
from paceline.hardware.catalogue import Catalogue
from paceline.predictor.comm.library import Library, library, library_names
from paceline.predictor.framework_profiles import FrameworkProfile, framework, framework_names
from paceline.render.table import Column, Table

_TERA, _GIGA = 1e-12, 1e-9


@dataclass(frozen=True)
class Listing:
    """One list: a table, its entries as JSON, and an example of a name."""

    table: Table
    entries: list[dict[str, Any]]
    example: str


def listing(what: str, known: Catalogue) -> Listing:
    """The list called ``what``."""
    match what:
        case "devices":
            return _devices(list(known.devices.values()))
        case "links":
            return _links(list(known.links.values()))
        case "clusters":
            return _clusters(list(known.clusters.values()))
        case "libraries":
            return _libraries([library(name) for name in library_names()])
        case _:
            return _frameworks([framework(name) for name in framework_names()])


def _devices(devices: list[Device]) -> Listing:
    def rate(name: str) -> tuple[Column, Callable[[Device], float | None]]:
        return Column(name, "TFLOP/s", scale=_TERA), lambda one: one.peak_flops.get(name)

    table = Table.of(
        devices,
        (Column("device"), lambda one: one.name),
        *map(rate, ("fp32", "tf32", "fp16", "bf16", "fp8")),
        (Column("memory", "GB", scale=_GIGA, decimals=0), lambda one: one.memory_bytes),
        (Column("bandwidth", "GB/s", scale=_GIGA, decimals=0), lambda one: one.memory_bandwidth),
        note="Dense peaks; unknown values are empty. 'paceline hardware NAME' shows the sources.",
    )
    return Listing(table, [device_facts(d) for d in devices], "v100")


def _links(links: list[Link]) -> Listing:
    reached = Column("collective bandwidth", "GB/s", scale=_GIGA, decimals=0)
    table = Table.of(
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
    return Listing(table, [link_facts(link) for link in links], "eth_10g")


def _clusters(clusters: list[Cluster]) -> Listing:
    table = Table.of(
        clusters,
        (Column("cluster"), lambda one: one.name),
        (Column("device"), lambda one: one.device.name),
        (Column("devices/node", decimals=0), lambda one: float(one.devices_per_node)),
        (Column("intra-node link"), lambda one: one.intra.name if one.intra else None),
        (Column("inter-node link"), lambda one: one.inter.name if one.inter else None),
        (Column("NICs", decimals=0), lambda one: float(one.nics_per_node)),
    )
    return Listing(table, [cluster_facts(cluster) for cluster in clusters], "dgx-a100")


def _libraries(libraries: list[Library]) -> Listing:
    def algorithms(one: Library) -> str:
        found = (v.algorithm for v in one.variants if v.operation == "all_reduce")
        return ", ".join(dict.fromkeys(found))

    table = Table.of(
        libraries,
        (Column("library"), lambda one: one.name),
        (Column("all-reduce algorithms"), algorithms),
        (Column("source"), lambda one: one.source),
    )
    return Listing(table, [asdict(one) for one in libraries], "nccl")


def _frameworks(frameworks: list[FrameworkProfile]) -> Listing:
    columns = (Column("framework"), Column("title"), Column("gradients"), Column("input pipeline"))
    rows = tuple(
        (one.name, one.title, describe_policy(one), describe_input(one)) for one in frameworks
    )
    return Listing(Table(columns, rows), [asdict(one) for one in frameworks], "torch-ddp")
