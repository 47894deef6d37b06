"""Devices, links, clusters, libraries and frameworks: as lists, and one with its sources."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from typing import Any

from paceline.catalog.listing import Listing
from paceline.hardware import Cluster, Device, Link, Provenance
from paceline.hardware.catalogue import Catalogue
from paceline.predictor.comm.library import Library, Variant, library, library_names
from paceline.predictor.framework_profiles import FrameworkProfile, framework, framework_names
from paceline.render.table import Column, Table
from paceline.render.terminal import prose
from paceline.units import format_bandwidth, format_bytes, format_flops, format_seconds


def device_facts(device: Device) -> dict[str, Any]:
    """A device as JSON; field names contain units, ``sources`` the source of each number."""
    return {
        "name": device.name,
        "vendor": device.vendor,
        "kind": device.kind,
        "peak_flops_per_second": dict(device.peak_flops),
        "attainable_flops_per_second": dict(device.attainable_flops),
        "matrix_precisions": sorted(device.matrix_precisions),
        "memory_bytes": device.memory_bytes,
        "memory_bandwidth_bytes_per_second": device.memory_bandwidth,
        "compute_units": device.compute_units,
        "clock_mhz": device.clock_mhz,
        "power_watts": device.power_watts,
        "year": device.year,
        "notes": device.notes,
        "sources": _sources_json(device.provenance),
    }


def link_facts(link: Link) -> dict[str, Any]:
    """A link as JSON; field names contain units, ``sources`` the source of each number."""
    return {
        "name": link.name,
        "scope": link.scope,
        "technology": link.technology,
        "transport": link.transport,
        "bandwidth_bytes_per_second": link.bandwidth,
        "per": link.per,
        "latency_seconds": link.latency_seconds,
        "collective_bandwidth_bytes_per_second": link.collective_bandwidth,
        "sums_in_switch": link.sums_in_switch,
        "notes": link.notes,
        "sources": _sources_json(link.provenance),
    }


def cluster_facts(cluster: Cluster) -> dict[str, Any]:
    """A cluster as JSON, with the names of its parts and the source of each number."""
    links = {"intra": cluster.intra, "inter": cluster.inter, "host": cluster.host}
    return {
        "name": cluster.name,
        "device": cluster.device.name,
        "devices_per_node": cluster.devices_per_node,
        "nodes": cluster.nodes,
        **{key: link.name if link else None for key, link in links.items()},
        "nics_per_node": cluster.nics_per_node,
        "oversubscription": cluster.oversubscription,
        "price_per_device_hour": cluster.price_per_device_hour,
        "notes": cluster.notes,
        "sources": _sources_json(cluster.provenance),
    }


def _sources_json(provenance: Mapping[str, Provenance]) -> dict[str, Any]:
    return {key: asdict(source) for key, source in provenance.items()}


def describe_policy(one: FrameworkProfile) -> str:
    """The policy of gradient synchronisation, such as ``bucketed, 25 MB``."""
    synchronisation = one.synchronisation
    text = str(synchronisation.policy).replace("_", " ")
    if text == "bucketed":
        text += f", {format_bytes(synchronisation.bucket_bytes)}"
    return text + (", parameter servers" if synchronisation.exchange == "parameter_server" else "")


def describe_input(one: FrameworkProfile) -> str:
    """When the next batch is prepared."""
    return "overlapped" if one.input_overlapped else "between steps"


def hardware_entry(kind: str, name: str, known: Catalogue) -> Listing:
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
