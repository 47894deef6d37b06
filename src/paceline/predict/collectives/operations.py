"""Seconds of each collective operation on a cluster: what step builders call.

``size_bytes`` may be an array, and so may the fields of the group. Payloads: the vector each
rank holds (all-reduce, broadcast); the whole vector, of which each rank has or gets its N-th
part (all-gather, reduce-scatter); all that one rank sends (all-to-all).
"""

from paceline.hardware import Cluster
from paceline.predict.collectives.cost import collective_cost
from paceline.predict.collectives.group import Group, Numbers
from paceline.predict.collectives.library import Library


def all_reduce_seconds(
    size_bytes: Numbers, group: Group, cluster: Cluster, library: str | Library = "nccl"
) -> Numbers:
    """Every rank ends with the sum of all vectors."""
    return collective_cost("all_reduce", group, cluster, library).seconds(size_bytes)


def reduce_scatter_seconds(
    size_bytes: Numbers, group: Group, cluster: Cluster, library: str | Library = "nccl"
) -> Numbers:
    """Every rank ends with its part of the sum."""
    return collective_cost("reduce_scatter", group, cluster, library).seconds(size_bytes)


def all_gather_seconds(
    size_bytes: Numbers, group: Group, cluster: Cluster, library: str | Library = "nccl"
) -> Numbers:
    """Every rank ends with the parts of all."""
    return collective_cost("all_gather", group, cluster, library).seconds(size_bytes)


def broadcast_seconds(
    size_bytes: Numbers, group: Group, cluster: Cluster, library: str | Library = "nccl"
) -> Numbers:
    """Every rank ends with the vector of one."""
    return collective_cost("broadcast", group, cluster, library).seconds(size_bytes)


def all_to_all_seconds(
    size_bytes: Numbers, group: Group, cluster: Cluster, library: str | Library = "nccl"
) -> Numbers:
    """Every rank sends another part to every other."""
    return collective_cost("all_to_all", group, cluster, library).seconds(size_bytes)


def point_to_point_seconds(
    size_bytes: Numbers,
    cluster: Cluster,
    library: str | Library = "nccl",
    *,
    across_nodes: bool,
    concurrent_pairs: Numbers = 1,
) -> Numbers:
    """One rank sends to another; ``concurrent_pairs`` of a node do so at the same time."""
    pair = Group(2, 1 if across_nodes else 2, concurrent_pairs)
    return collective_cost("point_to_point", pair, cluster, library).seconds(size_bytes)
