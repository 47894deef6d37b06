"""The catalogue as lists: what ``paceline hardware devices`` and its like print."""

from dataclasses import asdict, dataclass
from typing import Any

from paceline.cli.hardware_facts import (
    cluster_facts,
    device_facts,
    input_words,
    link_facts,
    policy_words,
)
from paceline.hardware import Cluster, Device, Link
from paceline.hardware.catalogue import Catalogue
from paceline.predictor.collectives import Library, library, library_names
from paceline.predictor.frameworks import FrameworkProfile, framework, framework_names
from paceline.report.table import Column, Table
from paceline.report.terminal import print_table

_TERA, _GIGA = 1e-12, 1e-9


@dataclass(frozen=True)
class Listing:
    """One list: a table for people, entries for programs, a name to look at next."""

    table: Table
    entries: list[dict[str, Any]]
    example: str

    def show(self) -> None:
        """Print the table."""
        print_table(self.table)


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
    rates = [
        Column(name, "TFLOP/s", scale=_TERA) for name in ("fp32", "tf32", "fp16", "bf16", "fp8")
    ]
    columns = (
        Column("device"),
        *rates,
        Column("memory", "GB", scale=_GIGA, decimals=0),
        Column("bandwidth", "GB/s", scale=_GIGA, decimals=0),
    )
    rows = tuple(
        (
            device.name,
            *(device.peak_flops.get(column.title) for column in rates),
            device.memory_bytes,
            device.memory_bandwidth,
        )
        for device in devices
    )
    note = "Dense peaks. What is not known is left open; a name shows the source of each number."
    return Listing(Table(columns, rows, note=note), [device_facts(d) for d in devices], "v100")


def _links(links: list[Link]) -> Listing:
    columns = (
        Column("link"),
        Column("scope"),
        Column("technology"),
        Column("bandwidth", "GB/s", scale=_GIGA),
        Column("per"),
        Column("latency", "us", scale=1e6),
        Column("reached by collectives", "GB/s", scale=_GIGA, decimals=0),
    )
    rows = tuple(
        (
            link.name,
            link.scope,
            f"{link.technology} {link.transport}".strip(),
            link.bandwidth,
            link.per,
            link.latency_seconds,
            link.collective_bandwidth,
        )
        for link in links
    )
    note = "One direction. Latency is that of wire and adapter; libraries add theirs."
    return Listing(Table(columns, rows, note=note), [link_facts(link) for link in links], "eth_10g")


def _clusters(clusters: list[Cluster]) -> Listing:
    columns = (
        Column("cluster"),
        Column("device"),
        Column("per node", decimals=0),
        Column("in the node"),
        Column("between nodes"),
        Column("cards", decimals=0),
    )
    rows = tuple(
        (
            cluster.name,
            cluster.device.name,
            float(cluster.devices_per_node),
            cluster.intra.name if cluster.intra else None,
            cluster.inter.name if cluster.inter else None,
            float(cluster.nics_per_node),
        )
        for cluster in clusters
    )
    entries = [cluster_facts(cluster) for cluster in clusters]
    return Listing(Table(columns, rows), entries, "dgx-a100")


def _libraries(libraries: list[Library]) -> Listing:
    columns = (Column("library"), Column("all-reduce by"), Column("source"))
    rows = tuple(
        (
            one.name,
            ", ".join(
                dict.fromkeys(v.algorithm for v in one.variants if v.operation == "all_reduce")
            ),
            one.source,
        )
        for one in libraries
    )
    return Listing(Table(columns, rows), [asdict(one) for one in libraries], "nccl")


def _frameworks(frameworks: list[FrameworkProfile]) -> Listing:
    columns = (Column("framework"), Column("title"), Column("gradients"), Column("input"))
    rows = tuple((one.name, one.title, policy_words(one), input_words(one)) for one in frameworks)
    return Listing(Table(columns, rows), [asdict(one) for one in frameworks], "torch-ddp")
