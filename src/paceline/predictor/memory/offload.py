"""Offload to host memory, and the cost of the round trip."""

from collections.abc import Sequence
from dataclasses import replace

from paceline.constants import number
from paceline.errors import InputError
from paceline.hardware import Cluster
from paceline.predictor.plan.plan import Plan
from paceline.predictor.plan.plan_choices import Offload
from paceline.predictor.schedule.step_costs import LayerTime


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
            "use a cluster with a 'host' link ('paceline hardware clusters'), or add one in a TOML "
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


def with_moved_activations(
    layers: Sequence[LayerTime],
    kept_bytes: Sequence[float],
    counts: Sequence[float],
    plan: Plan,
    cluster: Cluster,
) -> list[LayerTime]:
    """Layer times with activations offloaded; blocks have ``counts`` layers of each kind.

    Transfers overlap computing. The time by which they exceed a pass through all blocks is exposed
    and distributed over layers by their kept bytes.
    """
    if Offload.ACTIVATIONS not in plan.offload:
        return list(layers)
    one_way = [size / host_bandwidth(cluster) for size in kept_bytes]
    link = sum(count * seconds for count, seconds in zip(counts, one_way, strict=True))
    late = [
        max(0.0, link - sum(c * seconds for c, seconds in zip(counts, times, strict=True)))
        for times in (
            [layer.whole_forward_seconds for layer in layers],
            [layer.whole_backward_seconds for layer in layers],
        )
    ]
    shares = [seconds / link if link > 0 else 0.0 for seconds in one_way]
    return [
        replace(
            layer,
            forward_exchange_seconds=layer.forward_exchange_seconds + share * late[0],
            backward_exchange_seconds=layer.backward_exchange_seconds + share * late[1],
        )
        for layer, share in zip(layers, shares, strict=True)
    ]
