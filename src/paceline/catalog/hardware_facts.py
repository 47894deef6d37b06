"""Hardware and frameworks as JSON and text, shared by lists and single entries."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from paceline.hardware import Cluster, Device, Link, Provenance
from paceline.predictor.framework_profiles import FrameworkProfile
from paceline.units import format_bytes


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
