"""Offload to host memory, and the cost of the round trip."""

from collections.abc import Sequence

import numpy as np

from paceline.constants import number
from paceline.errors import InputError
from paceline.hardware import Cluster
from paceline.predictor.partition.partition import Array, Partition, weights_at
from paceline.predictor.plan.plan import Plan
from paceline.workload.blocks import part_of


def check_offload(plan: Plan, cluster: Cluster) -> None:
    """Reject offload without a host or a known link to it."""
    if not plan.offload:
        return
    what = " and ".join(plan.offload)
    if cluster.device.is_processor:
        raise InputError(
            f"cannot offload {what}: {cluster.device.name} already computes in host memory",
            "omit --offload",
        )
    if cluster.host is None or cluster.host.bandwidth is None:
        raise InputError(
            f"cannot offload {what}: {cluster.name} has no link to the host",
            "use a cluster with a 'host' link ('paceline catalog clusters'), or add one in a TOML "
            "file",
        )


def host_bandwidth(cluster: Cluster) -> float:
    """Bandwidth of one device's link to its host in bytes/s, one direction."""
    assert cluster.host is not None
    shared = cluster.devices_per_node if cluster.host.per == "node" else 1
    return cluster.host.known_bandwidth / shared


def host_update_seconds(
    parameters: float, moved_bytes: float, passed_bytes: float, cluster: Cluster
) -> float:
    """Seconds of an update on the host, which all devices of a node share.

    The update moves ``moved_bytes`` per parameter in host memory while ``passed_bytes`` of
    gradients and new weights cross the link; the slower of both decides.
    """
    memory = number("parallelism.host.memory_of_a_node") / cluster.devices_per_node
    return parameters * max(moved_bytes / memory, passed_bytes / host_bandwidth(cluster))


def moved_bytes(parts: Partition) -> Array:
    """Kept bytes of each kind for one micro-batch that are offloaded: those in numbered blocks."""
    nodes, samples = parts.workload.graph.nodes, parts.share_of_batch
    kept = [
        float(size.at(samples)) if part_of(nodes[first].name) else 0.0
        for first, size in zip(parts.classes.first, parts.kept.sizes, strict=True)
    ]
    return np.asarray(parts.loads * kept)


def weight_shards(parts: Partition) -> Array:
    """Bytes of the shard of each kind's weights that a pass reads from the host."""
    width = parts.precision.weight_bytes
    whole = weights_at(parts.workload, parts.kinds, width, parts.classes.first)
    return whole / parts.plan.shard_degree


def exposed_transfers(
    moved: Array, counts: Array, cluster: Cluster, passes: Sequence[Array]
) -> list[Array]:
    """Exposed seconds by kind of layer of offloaded state, in each of the ``passes``.

    There are ``counts`` layers of each kind, which move ``moved`` bytes each in a pass; ``passes``
    are seconds by kind of forward and of backward. Transfers overlap computing. The time by which
    they exceed a pass is exposed and distributed over layers by their bytes.
    """
    one_way = moved / host_bandwidth(cluster)
    link = float(counts @ one_way)
    shares = one_way / link if link > 0 else np.zeros_like(one_way)
    return [shares * max(0.0, link - float(counts @ seconds)) for seconds in passes]


def has_fast_host(cluster: Cluster) -> bool:
    """Whether activations can be offloaded under computing: NVLink to the memory of the host.

    Recipes of Megatron Bridge offload layers of Llama 3 70B on GB200 and GB300 without pipelines
    (cpu_offloading_num_layers).
    """
    return cluster.host is not None and cluster.host.technology == "nvlink"
