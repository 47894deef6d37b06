"""This machine as a cluster, with rates from its measured profile."""

from paceline.hardware.cluster import Cluster
from paceline.hardware.device import Device
from paceline.hardware.link import Link
from paceline.hardware.machine_profile import MachineProfile

_MEASURED_PRECISION = "fp32"


def machine_cluster(
    profile: MachineProfile | None,
    processes: int = 1,
    nodes: int = 1,
    link: Link | None = None,
) -> Cluster:
    """``nodes`` machines like this one, connected by ``link``, with ``processes`` on each.

    Each process counts as a device: the probe measures the rates of one process. Without a
    profile rates are unknown, so predictions need other measurements.
    """
    name = "this machine" if nodes == 1 else "nodes like this one"
    return Cluster(name, _process(profile), processes, nodes, _shared_memory(profile), link)


def _process(profile: MachineProfile | None) -> Device:
    if profile is None:
        return Device("this machine", "", "cpu", {})
    rate = {_MEASURED_PRECISION: profile.peak_gemm_flops}
    return Device(
        "this machine",
        "",
        "cpu",
        peak_flops=rate,
        memory_bandwidth=profile.memory_bandwidth,
        attainable_flops=rate,
        compute_units=profile.threads,
        notes=profile.source,
    )


def _shared_memory(profile: MachineProfile | None) -> Link | None:
    """Shared memory as a link; a ring all-reduce moves each byte 2 (N - 1) / N times."""
    if profile is None or not profile.all_reduce:
        return None
    ranks = min(profile.all_reduce)
    largest = profile.all_reduce[ranks][-1]
    bandwidth = 2.0 * (ranks - 1) / ranks * largest.size_bytes / largest.seconds
    return Link("shared memory", "intra", bandwidth, technology="memory")
