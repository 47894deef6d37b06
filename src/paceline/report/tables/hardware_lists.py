"""The catalogue as lists: what ``paceline hardware devices`` and its like print."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from paceline.hardware import Cluster, Device, Link
from paceline.hardware.catalogue import Catalogue
from paceline.predictor.collectives import Library, library, library_names
from paceline.predictor.frameworks import FrameworkProfile, framework, framework_names
from paceline.report.table import Column, Table
from paceline.report.tables.hardware_facts import (
    cluster_facts,
    device_facts,
    input_words,
    link_facts,
    policy_words,
)

_TERA, _GIGA = 1e-12, 1e-9


@dataclass(frozen=True)
class Listing:
    """One list: a table for people, entries for programs, a name to look at next."""

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
        note="Dense peaks. What is not known is left open; a name shows the source of each number.",
    )
    return Listing(table, [device_facts(d) for d in devices], "v100")


def _links(links: list[Link]) -> Listing:
    reached = Column("reached by collectives", "GB/s", scale=_GIGA, decimals=0)
    table = Table.of(
        links,
        (Column("link"), lambda one: one.name),
        (Column("scope"), lambda one: one.scope),
        (Column("technology"), lambda one: f"{one.technology} {one.transport}".strip()),
        (Column("bandwidth", "GB/s", scale=_GIGA), lambda one: one.bandwidth),
        (Column("per"), lambda one: one.per),
        (Column("latency", "us", scale=1e6), lambda one: one.latency_seconds),
        (reached, lambda one: one.collective_bandwidth),
        note="One direction. Latency is that of wire and adapter; libraries add theirs.",
    )
    return Listing(table, [link_facts(link) for link in links], "eth_10g")


def _clusters(clusters: list[Cluster]) -> Listing:
    table = Table.of(
        clusters,
        (Column("cluster"), lambda one: one.name),
        (Column("device"), lambda one: one.device.name),
        (Column("per node", decimals=0), lambda one: float(one.devices_per_node)),
        (Column("in the node"), lambda one: one.intra.name if one.intra else None),
        (Column("between nodes"), lambda one: one.inter.name if one.inter else None),
        (Column("cards", decimals=0), lambda one: float(one.nics_per_node)),
    )
    return Listing(table, [cluster_facts(cluster) for cluster in clusters], "dgx-a100")


def _libraries(libraries: list[Library]) -> Listing:
    def algorithms(one: Library) -> str:
        found = (v.algorithm for v in one.variants if v.operation == "all_reduce")
        return ", ".join(dict.fromkeys(found))

    table = Table.of(
        libraries,
        (Column("library"), lambda one: one.name),
        (Column("all-reduce by"), algorithms),
        (Column("source"), lambda one: one.source),
    )
    return Listing(table, [asdict(one) for one in libraries], "nccl")


def _frameworks(frameworks: list[FrameworkProfile]) -> Listing:
    columns = (Column("framework"), Column("title"), Column("gradients"), Column("input"))
    rows = tuple((one.name, one.title, policy_words(one), input_words(one)) for one in frameworks)
    return Listing(Table(columns, rows), [asdict(one) for one in frameworks], "torch-ddp")
