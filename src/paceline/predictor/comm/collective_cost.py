"""Seconds of a collective operation: counts of an algorithm x fabric x library."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paceline.errors import InputError
from paceline.hardware import Cluster
from paceline.predictor.comm.collective_algorithms import ALGORITHMS, Counts
from paceline.predictor.comm.fabric import Fabric, fabric_of
from paceline.predictor.comm.library import Library, Rule, Variant, library
from paceline.predictor.comm.rank_group import Group, Numbers

_OF_FEATURES = {"gather_features": "all_gather", "scatter_features": "reduce_scatter"}
"""Collectives on slices of features, and the operation that each is based on."""


@dataclass(frozen=True)
class VariantCost:
    """Latency (seconds) and seconds per byte of one variant on one fabric.

    Adds ``middle`` times the geometric mean of latency and transfer time to their sum.
    """

    name: str
    latency_seconds: Numbers
    seconds_per_byte: Numbers
    pipelined: bool = False
    middle: float = 0.0

    def seconds(self, size_bytes: Numbers) -> Numbers:
        """Time of one call with ``size_bytes`` of payload."""
        transfer = size_bytes * self.seconds_per_byte
        # A segmented message overlaps the latency of one segment with the transfer of others.
        if self.pipelined:
            return np.maximum(self.latency_seconds, transfer)
        together = self.latency_seconds + transfer
        # Measured NVLink collectives are slower than latency + transfer around the crossover
        # (``middle`` fitted on 378 collectives, data/constants/libraries.toml).
        if self.middle:
            together = together + self.middle * np.sqrt(self.latency_seconds * transfer)
        return together


@dataclass(frozen=True)
class Choice:
    """Variants selected by message size, for the groups where ``applies`` is true.

    ``limits`` are the upper sizes in bytes of each variant, increasing, infinity last; without
    limits the fastest variant is selected.
    """

    variants: tuple[VariantCost, ...]
    limits: tuple[float, ...] = ()
    applies: NDArray[np.bool_] | bool = True

    def seconds(self, sizes: Numbers) -> Numbers:
        """Time of one call, monotonic in size.

        Where a library switches to a faster algorithm, the time stays constant until the new
        algorithm reaches it, so a part of a message never costs more than the whole.
        """
        if not self.limits:
            result = self.variants[0].seconds(sizes)
            for variant in self.variants[1:]:
                result = np.minimum(result, variant.seconds(sizes))
            return result
        result, floor, lower = np.zeros(()), np.zeros(()), 0.0
        for variant, limit in zip(self.variants, self.limits, strict=True):
            inside = (sizes >= lower) & (sizes < limit)
            result = np.where(inside, np.maximum(variant.seconds(sizes), floor), result)
            if np.isfinite(limit):
                floor = np.maximum(floor, variant.seconds(limit))
            lower = limit
        return result

    def taken(self, size_bytes: float) -> str:
        """Name of the variant for a message of this size."""
        for variant, limit in zip(self.variants, self.limits, strict=False):
            if size_bytes < limit:
                return variant.name
        return min(self.variants, key=lambda v: float(np.max(v.seconds(size_bytes)))).name


@dataclass(frozen=True)
class CollectiveCost:
    """Cost of one operation in one group (or an array of groups) as a function of size."""

    choices: tuple[Choice, ...]
    alone: NDArray[np.bool_]
    rearranging: VariantCost | None = None
    """Copies on the device before or after the call (layout changes)."""

    def seconds(self, size_bytes: Numbers) -> Numbers:
        """Time of one call; 0 for one rank or an empty message."""
        sizes = np.asarray(size_bytes, dtype=np.float64)
        result = self.choices[0].seconds(sizes)
        for choice in self.choices[1:]:
            result = np.where(choice.applies, choice.seconds(sizes), result)
        if self.rearranging is not None:
            result = result + self.rearranging.seconds(sizes)
        result = np.where(self.alone | (sizes <= 0), 0.0, result)
        return float(result) if result.ndim == 0 else result

    def __call__(self, size_bytes: Any) -> Any:
        """Same as `seconds`; schedules take a cost as a function of size."""
        return self.seconds(size_bytes)

    def taken(self, size_bytes: float) -> str:
        """Name of the algorithm for a message of this size (one group)."""
        applying = [choice for choice in self.choices if np.all(choice.applies)]
        return applying[-1].taken(size_bytes)


def collective_cost(
    operation: str, group: Group, cluster: Cluster, which: str | Library
) -> CollectiveCost:
    """The cost of ``operation`` among ``group`` on ``cluster`` with a library."""
    cost = cost_on_fabric if np.ndim(group.ranks) or np.ndim(group.ranks_per_node) else _known_cost
    return cost(operation, group, fabric_of(cluster, group), library(which))


@lru_cache(maxsize=4096)
def _known_cost(operation: str, group: Group, fabric: Fabric, which: Library) -> CollectiveCost:
    """`cost_on_fabric` of one group; searches and what-ifs ask for the same ones many times."""
    return cost_on_fabric(operation, group, fabric, which)


def cost_on_fabric(operation: str, group: Group, fabric: Fabric, which: Library) -> CollectiveCost:
    """As `collective_cost`, on a fabric whose bandwidths may be arrays."""
    if operation in _OF_FEATURES:
        moved = cost_on_fabric(_OF_FEATURES[operation], group, fabric, which)
        return replace(moved, rearranging=_rearranging(fabric, which))
    usable = [
        variant
        for variant in which.variants
        if variant.operation == operation and _fits(variant, fabric)
    ]
    if not usable:
        raise InputError(
            f"{which.name} has no {operation.replace('_', ' ')} for this group",
            "use another library, e.g. nccl",
        )
    alone = np.asarray(group.ranks) <= 1
    rules = [rule for rule in which.rules if rule.operation == operation]
    if rules:
        return CollectiveCost(_by_rules(rules, usable, group, fabric, which), alone)
    return CollectiveCost(tuple(_fastest_choices(usable, group, fabric, which)), alone)


def _fastest_choices(
    usable: Sequence[Variant], group: Group, fabric: Fabric, which: Library
) -> Iterator[Choice]:
    """The fastest variant; groups inside one node use one-node variants if there are any."""
    for one_node in (False, True):
        costs = tuple(
            variant_cost(variant, group, fabric, which)
            for variant in usable
            if variant.one_node == one_node
        )
        if costs:
            yield Choice(costs, applies=np.asarray(group.nodes <= 1) if one_node else True)


def _rearranging(fabric: Fabric, which: Library) -> VariantCost:
    """Copies between rank-major and sample-major layout.

    A collective concatenates the parts of ranks, a sample stores its features contiguously, so
    everything is read and written once. Nothing overlaps such an exchange, so the overhead of the
    call on the device counts too.
    """
    per_byte = 0.0 if fabric.reduce_bandwidth is None else 2.0 / (3.0 * fabric.reduce_bandwidth)
    return VariantCost("rearranging", which.message_overhead_seconds, per_byte)


def variant_cost(variant: Variant, group: Group, fabric: Fabric, which: Library) -> VariantCost:
    """One variant of a library among ``group`` on ``fabric``."""
    counts = variant.counts(group)
    # Start and hops inside a node are instructions of a kernel, so they scale with the clock:
    # part of the fit that leaves one device out (docs/explanation/constants.md).
    slower = _slower_clock(variant, fabric)
    hop_seconds = {family: slower * each for family, each in variant.hop_seconds.items()}
    latency = slower * variant.start_seconds + _hops_seconds(counts, hop_seconds, fabric)
    # Horovod without response cache: four MPI calls before each message (mpi_controller.cc 0.19).
    if which.negotiation is not None:
        tree = ALGORITHMS["broadcast"]["tree"](group)
        hops = _hops_seconds(tree, which.negotiation.hop_seconds, fabric)
        latency = latency + which.negotiation.trees * hops
    inner_efficiency = which.efficiency.get(fabric.inner, 1.0)
    outer_efficiency = which.efficiency.get(fabric.outer, 1.0)
    if which.uses_collective_bandwidth and fabric.inner_efficiency is not None:
        inner_efficiency = fabric.inner_efficiency
    if which.uses_collective_bandwidth and fabric.outer_efficiency is not None:
        outer_efficiency = fabric.outer_efficiency
    inner = counts.inner_volume / (fabric.inner_bandwidth * inner_efficiency)
    outer = counts.outer_volume / (fabric.outer_bandwidth * outer_efficiency)
    # A ring or tree streams through both links at once; phases of a hierarchical algorithm add.
    transfer = np.maximum(inner, outer) if counts.together else inner + outer
    transfer = transfer / variant.bandwidth_fraction * (1.0 + variant.half_ranks / group.ranks)
    if fabric.reduce_bandwidth is not None:
        reduction = counts.reduced / fabric.reduce_bandwidth
        if which.hides_reduction:
            transfer = np.maximum(transfer, reduction)
        else:
            transfer = transfer + reduction
    return VariantCost(variant.name, latency, transfer, which.pipelined, variant.middle)


def _hops_seconds(counts: Counts, hop_seconds: Mapping[str, float], fabric: Fabric) -> Numbers:
    """Seconds of sequential messages, inside nodes and between them."""
    inner = hop_seconds.get(fabric.inner, 0.0) + fabric.inner_latency_seconds
    outer = hop_seconds.get(fabric.outer, 0.0) + fabric.outer_latency_seconds
    return counts.inner_messages * inner + counts.outer_messages * outer


def _slower_clock(variant: Variant, fabric: Fabric) -> float:
    """Slowdown of the variant's instructions on the devices of a fabric, by clock."""
    if not variant.clock_mhz or fabric.clock_mhz is None:
        return 1.0
    return variant.clock_mhz / fabric.clock_mhz


def _fits(variant: Variant, fabric: Fabric) -> bool:
    if variant.inner_families and fabric.inner not in variant.inner_families:
        return False
    return fabric.sums_in_switch or not variant.needs_switch


def _by_rules(
    rules: list[Rule], usable: list[Variant], group: Group, fabric: Fabric, which: Library
) -> tuple[Choice, ...]:
    """One choice per range of ranks, largest first: later ones override it for fewer ranks."""
    costs = {variant.algorithm: variant_cost(variant, group, fabric, which) for variant in usable}
    ranks = np.asarray(group.ranks)
    choices = []
    for ranks_below in sorted({rule.ranks_below for rule in rules}, reverse=True):
        own = [rule for rule in rules if rule.ranks_below == ranks_below]
        choices.append(
            Choice(
                variants=tuple(costs[rule.algorithm] for rule in own),
                limits=tuple(rule.bytes_below for rule in own),
                applies=ranks < ranks_below,
            )
        )
    return tuple(choices)
