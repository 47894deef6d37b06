"""One device, link, cluster, library or framework with the source of each number."""

from collections.abc import Callable
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
from paceline.predictor.comm.library import Library, Variant, library
from paceline.predictor.framework_profiles import FrameworkProfile, framework
from paceline.render.table import Column, Table
from paceline.render.terminal import prose
from paceline.units import format_bandwidth, format_bytes, format_flops, format_seconds


def hardware_entry(kind: str, name: str, known: Catalogue) -> Listing:
    """The entry of ``kind`` called ``name``."""
    match kind:
        case "devices":
            return _device_entry(known.device(name))
        case "links":
            return _link_entry(known.link(name))
        case "clusters":
            return _cluster_entry(known.cluster(name))
        case "libraries":
            return _library_entry(library(name))
        case _:
            return _framework_entry(framework(name))


def _device_entry(device: Device) -> Listing:
    facts: list[tuple[str, str | None, str]] = [
        (f"{name} peak", f"{format_flops(rate)}/s", f"peak_flops.{name}")
        for name, rate in device.peak_flops.items()
    ]
    facts += [
        (f"{name} attainable by GEMM", f"{format_flops(rate)}/s", f"attainable_flops.{name}")
        for name, rate in device.attainable_flops.items()
    ]
    facts += [
        (
            "matrix unit precisions",
            ", ".join(sorted(device.matrix_precisions)) or "none",
            "matrix_precisions",
        ),
        ("memory", _shown(device.memory_bytes, format_bytes), "memory"),
        ("memory bandwidth", _shown(device.memory_bandwidth, format_bandwidth), "memory_bandwidth"),
        ("compute units", _shown(device.compute_units, str), "compute_units"),
        ("clock", _shown(device.clock_mhz, lambda clock: f"{clock:.0f} MHz"), "clock_mhz"),
        ("power", _shown(device.power_watts, lambda watts: f"{watts:.0f} W"), "power_watts"),
        ("year", _shown(device.year, str), "year"),
    ]
    title = f"{device.name}: {device.vendor} {device.kind}"
    further = ("paceline catalog clusters", "paceline predict --help")
    return _entry("devices", title, facts, device, device_facts(device), further)


def _link_entry(link: Link) -> Listing:
    facts = [
        ("scope", link.scope, "scope"),
        ("technology", f"{link.technology} {link.transport}".strip(), "technology"),
        ("unidirectional bandwidth", _shown(link.bandwidth, format_bandwidth), "bandwidth"),
        ("bandwidth per", link.per, "per"),
        ("latency", _shown(link.latency_seconds, format_seconds), "latency"),
        (
            "attainable by collectives",
            _shown(link.collective_bandwidth, format_bandwidth),
            "collective_bandwidth",
        ),
    ]
    further = ("paceline catalog clusters", "paceline predict --help")
    return _entry("links", link.name, facts, link, link_facts(link), further)


def _cluster_entry(cluster: Cluster) -> Listing:
    links = (cluster.intra, cluster.inter, cluster.host)
    intra, inter, host = (link.name if link else None for link in links)
    price = cluster.price_per_device_hour
    facts = [
        ("device", cluster.device.name, "device"),
        ("devices per node", str(cluster.devices_per_node), "devices_per_node"),
        ("nodes", str(cluster.nodes), "nodes"),
        ("link inside a node", intra, "intra"),
        ("link between nodes", inter, "inter"),
        ("link to the host", host, "host"),
        ("NICs per node", str(cluster.nics_per_node), "nics_per_node"),
        ("oversubscription", f"{cluster.oversubscription:g}", "oversubscription"),
        ("price per device-hour", _shown(price, str), "price_per_device_hour"),
    ]
    names = [
        f"devices {cluster.device.name}",
        *(f"links {name}" for name in (intra, inter) if name),
    ]
    further = tuple(f"paceline catalog {name}" for name in names)
    return _entry("clusters", cluster.name, facts, cluster, cluster_facts(cluster), further)


def _framework_entry(one: FrameworkProfile) -> Listing:
    priors = set(one.priors)
    facts = [
        ("gradient synchronisation", describe_policy(one), "synchronisation"),
        (
            "communication library",
            f"{one.accelerator_library} / {one.processor_library} (CPU)",
            "library",
        ),
        ("input pipeline", describe_input(one), "input_overlapped"),
        ("dispatch time per operation", format_seconds(one.dispatch_seconds), "dispatch"),
        ("overhead per step", format_seconds(one.step_overhead_seconds), "step_overhead"),
        ("overhead per message", format_seconds(one.message_overhead_seconds), "message_overhead"),
        ("latency per message", format_seconds(one.message_latency_seconds), "message_latency"),
        ("overhead per tensor", format_seconds(one.tensor_overhead_seconds), "tensor_overhead"),
        ("remaining pointwise traffic", f"{one.pointwise_traffic:.0%}", "pointwise_traffic"),
        ("convolution", one.convolution, "convolution"),
    ]
    table = Table.of(
        facts,
        (Column("property"), lambda fact: fact[0]),
        (Column("value"), lambda fact: fact[1]),
        (Column("source"), lambda fact: "prior" if fact[2] in priors else "[1]"),
        title=f"{one.name}: {one.title}",
        note=one.policy,
    )
    further = ("paceline catalog frameworks", "paceline predict --help")
    return Listing("frameworks", (asdict(one),), (table, *_numbered([one.source])), further)


def _library_entry(one: Library) -> Listing:
    def hop(family: str) -> tuple[Column, Callable[[Variant], float | None]]:
        column = Column(f"hop {family}", "us", scale=1e6)
        return column, lambda variant: variant.hop_seconds.get(family.lower())

    table = Table.of(
        one.variants,
        (Column("operation"), lambda variant: variant.operation),
        (Column("algorithm"), lambda variant: variant.name),
        (Column("start", "us", scale=1e6), lambda variant: variant.start_seconds),
        *map(hop, ("NVLink", "PCIe", "RDMA", "TCP")),
        (Column("bandwidth fraction", decimals=2), lambda variant: variant.bandwidth_fraction),
        title=one.name,
        note=one.source,
    )
    further = (f"paceline catalog constants libraries.{one.name}",)
    return Listing("libraries", (asdict(one),), (table,), further)


def _entry(
    kind: str,
    title: str,
    facts: list[tuple[str, str | None, str]],
    described: Device | Link | Cluster,
    facts_json: dict[str, Any],
    next_commands: tuple[str, ...],
) -> Listing:
    rows = []
    sources: list[str] = []
    provenance = described.provenance
    for label, value, key in facts:
        source = provenance.get(key) or provenance.get(key.split(".")[0])
        if not value or source is None:
            rows.append((label, value or "unknown", "", ""))
            continue
        text = f"{source.source}, {source.date}" if source.date else source.source
        if text not in sources:
            sources.append(text)
        rows.append((label, value, str(source.confidence), f"[{sources.index(text) + 1}]"))
    columns = (Column("property"), Column("value"), Column("confidence"), Column("source"))
    table = Table(columns, tuple(rows), title=title, note=described.notes)
    return Listing(kind, (facts_json,), (table, *_numbered(sources)), next_commands)


def _numbered(sources: list[str]) -> list[str]:
    texts = (f"[{number}] {source}" for number, source in enumerate(sources, start=1))
    return [line for text in texts for line in prose(text, "    ")]


def _shown(value: Any, text: Callable[[Any], str]) -> str | None:
    return None if value is None else text(value)
