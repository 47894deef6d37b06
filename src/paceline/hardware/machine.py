"""This machine as a cluster: what its profile measured in place of a data sheet."""

from paceline.hardware.cluster import Cluster
from paceline.hardware.device import Device
from paceline.hardware.link import Link
from paceline.hardware.profile import MachineProfile

_MEASURED_PRECISION = "fp32"


def machine_cluster(
    profile: MachineProfile | None,
    processes: int = 1,
    nodes: int = 1,
    link: Link | None = None,
) -> Cluster:
    """``nodes`` machines like this one joined by ``link``, with ``processes`` on each.

    A process is a device: the probe measured the rates of one. Without a profile they are not
    known, and only what was measured otherwise can be predicted.
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
    """What ranks of this machine exchange over; all-reduce moves each byte about twice."""
    if profile is None or not profile.all_reduce:
        return None
    ranks = min(profile.all_reduce)
    largest = profile.all_reduce[ranks][-1]
    bandwidth = 2.0 * (ranks - 1) / ranks * largest.size_bytes / largest.seconds
    return Link("shared memory", "intra", bandwidth, technology="memory")
