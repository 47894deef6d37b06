"""Collective algorithms as counts: sequential messages and multiples of the payload moved.

Each function gives the cost of one call on a `Group` in units of the fabric's constants
(alpha-beta model; Thakur, Rabenseifner and Gropp 2005). M is the payload: the vector that every
rank holds (all-reduce, broadcast), the whole vector of which each rank has or gets its N-th part
(all-gather, reduce-scatter), or all bytes that one rank sends (all-to-all).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType

import numpy as np

from paceline.plugins import PluginError, PluginKind, plugins
from paceline.predictor.comm.rank_group import Group, Numbers


@dataclass(frozen=True)
class Counts:
    """Cost of one call.

    ``inner_messages`` and ``outer_messages`` are sequential (inside a node, between nodes).
    ``inner_volume`` is the multiple of M through the busiest device's link, ``outer_volume`` that
    through the NICs of a node, one direction. ``reduced`` is the multiple of M that one rank sums.
    ``together``: both volumes are transferred concurrently.
    """

    inner_messages: Numbers
    outer_messages: Numbers
    inner_volume: Numbers
    outer_volume: Numbers
    reduced: Numbers = 0.0
    together: bool = False


def _log2(count: Numbers) -> Numbers:
    return np.ceil(np.log2(count) - 1e-9)


def _is_power_of_two(count: Numbers) -> Numbers:
    return np.where(np.exp2(_log2(count)) == count, 1.0, 0.0)


def _ring(group: Group, passes: int, reduces: bool) -> Counts:
    """``passes`` rounds of (N - 1)/N of M around a ring of all ranks."""
    ranks, nodes = group.ranks, group.nodes
    hops = passes * (ranks - 1.0)
    crossing = np.where(nodes > 1, nodes / ranks, 0.0)
    volume = passes * (ranks - 1.0) / ranks
    return Counts(
        inner_messages=hops * (1.0 - crossing),
        outer_messages=hops * crossing,
        inner_volume=np.where(group.in_node > 1, volume, 0.0),
        outer_volume=np.where(nodes > 1, volume, 0.0),
        reduced=(ranks - 1.0) / ranks if reduces else 0.0,
        together=True,
    )


def ring_all_reduce(group: Group) -> Counts:
    """Reduce-scatter, then all-gather, each once around the ring."""
    return _ring(group, 2, reduces=True)


def ring_all_gather(group: Group) -> Counts:
    """Each part once around the ring."""
    return _ring(group, 1, reduces=False)


def ring_reduce_scatter(group: Group) -> Counts:
    """Each part once around the ring, summed on the way."""
    return _ring(group, 1, reduces=True)


def double_tree_all_reduce(group: Group) -> Counts:
    """Two binary trees over nodes, chains inside nodes, halves of M up and down each.

    A node forwards M up and M down (NCCL's tuning model also counts 2 M).
    """
    nodes, in_node = group.nodes, group.in_node
    return Counts(
        inner_messages=2.0 * (in_node - 1.0),
        outer_messages=2.0 * _log2(nodes),
        inner_volume=np.where(in_node > 1, 2.0, 0.0),
        outer_volume=np.where(nodes > 1, 2.0, 0.0),
        reduced=np.where(group.ranks > 1, 1.0, 0.0),
        together=True,
    )


def tree_all_reduce(group: Group) -> Counts:
    """Binomial reduce to one rank, binomial broadcast back, the whole of M at each level."""
    inner, outer = _log2(group.in_node), _log2(group.nodes)
    return Counts(2.0 * inner, 2.0 * outer, 2.0 * inner, 2.0 * outer, reduced=inner + outer)


def recursive_doubling_all_reduce(group: Group) -> Counts:
    """Exchange all of M with partners at distance 1, 2, 4, ...; NICs carry all ranks at once."""
    inner, outer = _log2(group.in_node), _log2(group.nodes)
    return Counts(inner, outer, inner, outer * group.in_node, reduced=inner + outer)


def halving_doubling_all_reduce(group: Group) -> Counts:
    """Rabenseifner: recursive halving reduce-scatter, then recursive doubling all-gather.

    Ranks beyond a power of two send their vector to a partner first and get the result last.
    """
    inner, outer, ranks = group.in_node, group.nodes, group.ranks
    fold = 2.0 * (1.0 - _is_power_of_two(ranks))
    across = np.where(outer > 1, fold, 0.0)
    return Counts(
        inner_messages=2.0 * _log2(inner) + fold - across,
        outer_messages=2.0 * _log2(outer) + across,
        inner_volume=2.0 * (inner - 1.0) / inner + fold - across,
        outer_volume=2.0 * (outer - 1.0) / outer + across,
        reduced=(ranks - 1.0) / ranks,
    )


def hierarchical_all_reduce(group: Group) -> Counts:
    """Reduce-scatter in the node, ring all-reduce between nodes over all NICs, all-gather."""
    inner, outer = group.in_node, group.nodes
    return Counts(
        inner_messages=2.0 * (inner - 1.0),
        outer_messages=2.0 * (outer - 1.0),
        inner_volume=2.0 * (inner - 1.0) / inner,
        outer_volume=2.0 * (outer - 1.0) / outer,
        reduced=(inner - 1.0) / inner + (outer - 1.0) / (outer * inner),
    )


def switch_all_reduce(group: Group) -> Counts:
    """In-switch reduction (NVLink SHARP): each device sends M and gets M/N more."""
    ranks = group.ranks
    volume = np.where(ranks > 1, 1.0 + 1.0 / ranks, 0.0)
    return Counts(np.where(ranks > 1, 1.0, 0.0), 0.0, volume, 0.0, together=True)


def _recursive(group: Group, reduces: bool) -> Counts:
    """Partners at distance 1, 2, 4, ... exchange all parts gathered so far."""
    inner, outer, ranks = group.in_node, group.nodes, group.ranks
    return Counts(
        inner_messages=_log2(inner),
        outer_messages=_log2(outer),
        inner_volume=(inner - 1.0) / ranks,
        outer_volume=inner * (ranks - inner) / ranks,
        reduced=(ranks - 1.0) / ranks if reduces else 0.0,
    )


def recursive_doubling_all_gather(group: Group) -> Counts:
    """All-gather in ceil(log2 N) messages."""
    return _recursive(group, reduces=False)


def recursive_halving_reduce_scatter(group: Group) -> Counts:
    """Reduce-scatter in ceil(log2 N) messages."""
    return _recursive(group, reduces=True)


def tree_broadcast(group: Group) -> Counts:
    """Binomial tree: all of M at each of ceil(log2 N) levels."""
    inner, outer = _log2(group.in_node), _log2(group.nodes)
    return Counts(inner, outer, inner, outer)


def chain_broadcast(group: Group) -> Counts:
    """M in small pieces along a chain of all ranks."""
    ranks, nodes = group.ranks, group.nodes
    return Counts(
        inner_messages=ranks - nodes,
        outer_messages=nodes - 1.0,
        inner_volume=np.where(group.in_node > 1, 1.0, 0.0),
        outer_volume=np.where(nodes > 1, 1.0, 0.0),
        together=True,
    )


def scatter_gather_broadcast(group: Group) -> Counts:
    """Binomial scatter, then ring all-gather."""
    gather = ring_all_gather(group)
    inner, outer = group.in_node, group.nodes
    return Counts(
        inner_messages=gather.inner_messages + _log2(inner),
        outer_messages=gather.outer_messages + _log2(outer),
        inner_volume=gather.inner_volume + (inner - 1.0) / inner / outer,
        outer_volume=gather.outer_volume + (outer - 1.0) / outer,
    )


def _exchange(group: Group, rounds: bool) -> Counts:
    """Every rank sends an N-th of M to every other rank."""
    inner, ranks = group.in_node, group.ranks
    away = ranks - inner
    some_inner, some_outer = np.where(inner > 1, 1.0, 0.0), np.where(away > 0, 1.0, 0.0)
    return Counts(
        inner_messages=inner - 1.0 if rounds else some_inner,
        outer_messages=away if rounds else some_outer,
        inner_volume=(inner - 1.0) / ranks,
        outer_volume=inner * away / ranks,
        together=not rounds,
    )


def pairwise_all_to_all(group: Group) -> Counts:
    """N - 1 rounds with a different partner each."""
    return _exchange(group, rounds=True)


def direct_all_to_all(group: Group) -> Counts:
    """All messages posted at once."""
    return _exchange(group, rounds=False)


def direct_point_to_point(group: Group) -> Counts:
    """M from one rank to another, across nodes if the group spans several."""
    inside = np.where((group.nodes == 1) & (group.ranks > 1), 1.0, 0.0)
    across = np.where(group.nodes > 1, 1.0, 0.0)
    return Counts(inside, across, inside, across)


Algorithm = Callable[[Group], Counts]


@dataclass(frozen=True)
class AddedAlgorithm:
    """An algorithm of an installed package for one operation, named by its entry point."""

    operation: str
    counts: Algorithm


ALGORITHMS: Mapping[str, Mapping[str, Algorithm]] = MappingProxyType(
    {
        "all_reduce": {
            "ring": ring_all_reduce,
            "tree": tree_all_reduce,
            "double_tree": double_tree_all_reduce,
            "recursive_doubling": recursive_doubling_all_reduce,
            "halving_doubling": halving_doubling_all_reduce,
            "hierarchical": hierarchical_all_reduce,
            "switch": switch_all_reduce,
        },
        "reduce_scatter": {
            "ring": ring_reduce_scatter,
            "recursive_halving": recursive_halving_reduce_scatter,
        },
        "all_gather": {
            "ring": ring_all_gather,
            "recursive_doubling": recursive_doubling_all_gather,
        },
        "broadcast": {
            "tree": tree_broadcast,
            "chain": chain_broadcast,
            "scatter_gather": scatter_gather_broadcast,
        },
        "all_to_all": {"pairwise": pairwise_all_to_all, "direct": direct_all_to_all},
        "point_to_point": {"direct": direct_point_to_point},
    }
)
"""Built-in algorithms of each operation by name."""


@lru_cache(maxsize=1)
def algorithms() -> Mapping[str, Mapping[str, Algorithm]]:
    """Algorithms of each operation by name, built-in and from installed packages."""
    together = {operation: dict(table) for operation, table in ALGORITHMS.items()}
    for plugin, value in plugins(PluginKind.COLLECTIVE):
        if not isinstance(value, AddedAlgorithm):
            continue
        if value.operation not in together:
            raise PluginError(plugin, f"unknown collective operation '{value.operation}'")
        if plugin.name in together[value.operation]:
            raise PluginError(plugin, f"the name '{plugin.name}' is already defined")
        together[value.operation][plugin.name] = value.counts
    return together
