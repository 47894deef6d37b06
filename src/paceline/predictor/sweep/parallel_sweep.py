"""A sweep over two axes on several processes or a cluster, divided along the second axis."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from paceline.hardware import Cluster
from paceline.parallel_map import (
    PARTS_PER_WORKER,
    Workers,
    cluster_size,
    parallel_map,
    parse_workers,
)
from paceline.predictor.sweep import SweepComparison, compare
from paceline.workload.workload import Workload


def compare_by_workers(
    workload: Workload,
    cluster: Cluster,
    axes: Mapping[str, Sequence[float]],
    ways: Sequence[str],
    *,
    workers: Workers = 1,
    **settings: Any,
) -> SweepComparison:
    """Run `compare` on ``workers`` (processes, or a cluster) and merge the results.

    Each worker has the whole first axis, along which crossovers are solved, for some values of the
    second. A sweep of one axis runs in this process because it is faster than distributing it.
    """
    workers = parse_workers(workers)
    if workers == 1 or len(axes) < 2:
        return compare(workload, cluster, axes, ways, **settings)
    (first, firsts), (second, seconds), *_ = axes.items()
    count = min(len(seconds), cluster_size(workers) * PARTS_PER_WORKER)
    values = np.array_split(np.sort(np.asarray(seconds, dtype=float)), count)
    ask = partial(_part, workload, cluster, first, list(firsts), second, list(ways), settings)
    return _together(parallel_map(ask, [own.tolist() for own in values], workers))


def _part(
    workload: Workload,
    cluster: Cluster,
    first: str,
    firsts: Sequence[float],
    second: str,
    ways: Sequence[str],
    settings: Mapping[str, Any],
    seconds: Sequence[float],
) -> SweepComparison:
    return compare(workload, cluster, {first: firsts, second: seconds}, ways, **settings)


def _together(parts: Sequence[SweepComparison]) -> SweepComparison:
    first, second = parts[0].axes
    return SweepComparison(
        {first: parts[0].axes[first], second: np.concatenate([own.axes[second] for own in parts])},
        {
            way: np.concatenate([own.seconds[way] for own in parts], axis=1)
            for way in parts[0].seconds
        },
        np.concatenate([own.samples for own in parts], axis=1),
        tuple(found for own in parts for found in own.crossings),
    )
