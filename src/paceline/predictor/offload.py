"""What leaves a device for the memory of its host, and what the way there and back costs."""

from collections.abc import Sequence
from dataclasses import replace

from paceline.constants import number
from paceline.errors import InputError
from paceline.hardware import Cluster
from paceline.plan.choices import Offload
from paceline.plan.plan import Plan
from paceline.predictor.step_costs import LayerTime


def check_offload(plan: Plan, cluster: Cluster) -> None:
    """Refuse to move anything where there is no host, or no link to it is known."""
    if not plan.offload:
        return
    what = " and ".join(plan.offload)
    if cluster.device.is_processor:
        raise InputError(
            f"offload of {what}: {cluster.device.name} computes in the memory of its host",
            "leave --offload out",
        )
    if cluster.host is None or cluster.host.bandwidth is None:
        raise InputError(
            f"offload of {what} goes over the link to the host, and {cluster.name} states none",
            "take a cluster with a 'host' link ('paceline hardware clusters'), or add one to a "
            "TOML file of your own",
        )


def host_bandwidth(cluster: Cluster) -> float:
    """Bytes per second of one device's link to its host, one way."""
    assert cluster.host is not None
    shared = cluster.devices_per_node if cluster.host.per == "node" else 1
    return cluster.host.known_bandwidth / shared


def host_update_seconds(
    parameters: float, moved_bytes: float, passed_bytes: float, cluster: Cluster
) -> float:
    """Seconds of an update on the host, which the devices of a node share.

    It moves ``moved_bytes`` per parameter in the host's memory while ``passed_bytes`` of
    gradients and new weights cross the link.
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
    """Kinds of layer whose kept bytes go to the host and back; blocks have ``counts`` of each.

    The link works beside computing. What it takes longer than a pass through all blocks shows, in
    layers by what they keep.
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
