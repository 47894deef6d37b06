"""Seconds of each collective operation on a cluster.

``size_bytes`` may be an array, and so may the fields of the group. Payloads: the vector each
rank holds (all-reduce, broadcast); the whole vector, of which each rank has or gets its N-th
part (all-gather, reduce-scatter); all that one rank sends (all-to-all).
"""

from functools import partial

from paceline.hardware import Cluster
from paceline.predictor.collectives.cost import collective_cost
from paceline.predictor.collectives.group import Group, Numbers
from paceline.predictor.collectives.library import Library


def collective_seconds(
    operation: str,
    size_bytes: Numbers,
    group: Group,
    cluster: Cluster,
    library: str | Library = "nccl",
) -> Numbers:
    """Seconds of ``operation`` on ``size_bytes`` of payload among ``group`` on ``cluster``."""
    return collective_cost(operation, group, cluster, library).seconds(size_bytes)


all_reduce_seconds = partial(collective_seconds, "all_reduce")
"""Every rank ends with the sum of all vectors."""

reduce_scatter_seconds = partial(collective_seconds, "reduce_scatter")
"""Every rank ends with its part of the sum."""

all_gather_seconds = partial(collective_seconds, "all_gather")
"""Every rank ends with the parts of all."""

broadcast_seconds = partial(collective_seconds, "broadcast")
"""Every rank ends with the vector of one."""

all_to_all_seconds = partial(collective_seconds, "all_to_all")
"""Every rank sends another part to every other."""


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
    return collective_seconds("point_to_point", size_bytes, pair, cluster, library)
