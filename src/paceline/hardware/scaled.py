"""Devices, links and clusters with scaled rates."""

from collections.abc import Mapping
from dataclasses import replace

from paceline.hardware.cluster import Cluster
from paceline.hardware.device import Device
from paceline.hardware.link import Link
from paceline.naming import look_up

SCALES = ("flops", "memory", "link")
"""Rates that can be scaled: arithmetic, device memory, network."""


def faster_arithmetic(device: Device, factor: float) -> Device:
    """A device that computes ``factor`` times as fast."""
    return replace(
        device,
        peak_flops={name: rate * factor for name, rate in device.peak_flops.items()},
        attainable_flops={name: rate * factor for name, rate in device.attainable_flops.items()},
    )


def faster_memory(device: Device, factor: float) -> Device:
    """A device whose memory moves ``factor`` times as many bytes per second."""
    return replace(device, memory_bandwidth=device.known_memory_bandwidth * factor)


def wider_link(link: Link, factor: float) -> Link:
    """A link with ``factor`` times the bandwidth and the same latency."""
    measured = link.collective_bandwidth
    return replace(
        link,
        bandwidth=link.known_bandwidth * factor,
        collective_bandwidth=None if measured is None else measured * factor,
    )


def faster_link(link: Link, factor: float) -> Link:
    """A link with ``factor`` times the bandwidth and 1/``factor`` of the latency."""
    start = link.latency_seconds
    wider = wider_link(link, factor)
    return replace(wider, latency_seconds=None if start is None else start / factor)


def scaled_cluster(cluster: Cluster, factors: Mapping[str, float]) -> Cluster:
    """A cluster with some `SCALES` multiplied by factors; latencies do not change."""
    device, network = cluster.device, cluster.inter
    for name, factor in factors.items():
        look_up("scale", name, dict.fromkeys(SCALES), f"one of {', '.join(SCALES)}")
        if name == "flops":
            device = faster_arithmetic(device, factor)
        elif name == "memory":
            device = faster_memory(device, factor)
        elif network is not None:
            network = wider_link(network, factor)
    return replace(cluster, device=device, inter=network)
