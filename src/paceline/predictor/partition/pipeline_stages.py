"""Pipeline chunks of the network: their layers, and the bytes sent between them."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from paceline.predictor.partition.partition import Array, Partition
from paceline.predictor.partition.sharding import Sharding
from paceline.predictor.plan.interleaving import ENDS
from paceline.predictor.plan.plan import Plan
from paceline.workload.blocks import Block, blocks, part_of
from paceline.workload.cost import Affine, total
from paceline.workload.graph import Graph

if TYPE_CHECKING:
    from paceline.predictor.schedule.device_times import DeviceTimes

from paceline.errors import InputError

_PIECES_OF_A_TAIL = 3
"""Blocks that nanotron counts for head and loss: linear layer, cast, loss."""


def chunks_of_equal_blocks(
    parts: Sequence[Block], chunks: int, sizes: Sequence[int] = ()
) -> tuple[Block, ...]:
    """Runs of whole blocks, one per pipeline chunk, of given ``sizes`` or as equal as possible."""
    count = len(parts)
    if sizes and sum(sizes) != count:
        raise InputError(
            f"stage sizes sum to {sum(sizes)} blocks, but the network has {count}",
            f"give sizes that sum to {count}",
        )
    if not sizes:
        _check_filled(count, chunks)
        sizes = [count // chunks + (number < count % chunks) for number in range(chunks)]
    return _runs(parts, sizes)


def balanced_chunks(
    parts: Sequence[Block], weights: Sequence[float], chunks: int
) -> tuple[Block, ...]:
    """Runs of whole blocks that minimise the cost of the most expensive run.

    ``weights`` are seconds (or FLOP) of each block.
    """
    _check_filled(len(parts), chunks)
    return _runs(parts, _lightest_heaviest(weights, chunks))


def _check_filled(count: int, chunks: int) -> None:
    """Reject more chunks than blocks."""
    if chunks > count:
        raise InputError(
            f"{count} blocks cannot fill {chunks} pipeline chunks",
            f"use pp x interleave of at most {count}",
        )


def chunks_by_cost(
    parts: Sequence[Block], weights: Sequence[float], chunks: int
) -> tuple[Block, ...]:
    """Runs of whole blocks, each closed by the block with which it reaches its share of the cost.

    nanotron partitions in one pass like this, so the first runs are the most expensive. It counts
    head and loss as `_PIECES_OF_A_TAIL` blocks of which the first has all the cost. Partitions
    with empty runs are rejected.
    """
    _check_filled(len(parts), chunks)
    filled = _filled_in_one_pass(weights, chunks)
    if filled < chunks:
        raise InputError(
            f"partitioning by cost leaves {chunks - filled} of {chunks} pipeline chunks empty",
            f"use pp x interleave of at most {filled}",
        )
    whole, passed = sum(weights), 0.0
    sizes = [0] * chunks
    chunk = 0
    for number, weight in enumerate(weights):
        sizes[chunk] += 1
        passed += weight
        left_blocks, left_chunks = len(parts) - number - 1, chunks - chunk - 1
        is_full = passed * chunks >= whole * (chunk + 1)
        if left_chunks and (is_full or left_blocks == left_chunks):
            chunk += 1
    return _runs(parts, sizes)


def _filled_in_one_pass(weights: Sequence[float], chunks: int) -> int:
    """Number of non-empty chunks in a one-pass partition by cost."""
    whole, passed, chunk, last = sum(weights), 0.0, 0, 0
    for weight in (*weights, *[0.0] * (_PIECES_OF_A_TAIL - 1)):
        last = chunk
        passed += weight
        if passed * chunks >= whole * (chunk + 1) and chunk + 1 < chunks:
            chunk += 1
    return last + 1


def with_own_ends(parts: Sequence[Block], graph: Graph) -> tuple[Block, ...]:
    """The blocks with the embedding and with head and loss as separate blocks.

    Megatron Core counts them as layers of the pipeline, so 126 blocks make 128 chunks
    (account_for_embedding_in_pipeline_split, account_for_loss_in_pipeline_split).
    """
    first, *others = with_own_tail(parts, graph)
    own = [i for i in range(first.first, first.last) if part_of(graph.nodes[i].name)]
    if not own or own[0] == first.first:
        return (first, *others)
    head = Block("head", first.first, own[0])
    return (head, Block(first.name, own[0], first.last), *others)


def with_own_tail(parts: Sequence[Block], graph: Graph) -> tuple[Block, ...]:
    """The blocks with head and loss (after the last numbered node) as a separate block."""
    last = parts[-1]
    numbered = [i for i in range(last.first, last.last) if part_of(graph.nodes[i].name)]
    if not numbered or numbered[-1] + 1 == last.last:
        return tuple(parts)
    cut = numbered[-1] + 1
    return (*parts[:-1], Block(last.name, last.first, cut), Block("tail", cut, last.last))


def _runs(parts: Sequence[Block], sizes: Sequence[int]) -> tuple[Block, ...]:
    if any(size < 1 for size in sizes):
        raise InputError("a pipeline chunk has no block", "give each chunk at least one block")
    runs = []
    start = 0
    for number, size in enumerate(sizes):
        run = parts[start : start + size]
        runs.append(Block(f"stage {number}", run[0].first, run[-1].last))
        start += size
    return tuple(runs)


def _lightest_heaviest(weights: Sequence[float], chunks: int) -> list[int]:
    """Sizes of consecutive groups that minimise the largest sum (dynamic programming)."""
    count = len(weights)
    prefix = [0.0]
    for weight in weights:
        prefix.append(prefix[-1] + weight)
    best = [[float("inf")] * (count + 1) for _ in range(chunks + 1)]
    cut = [[0] * (count + 1) for _ in range(chunks + 1)]
    best[0][0] = 0.0
    for groups in range(1, chunks + 1):
        for end in range(groups, count + 1):
            for start in range(groups - 1, end):
                heaviest = max(best[groups - 1][start], prefix[end] - prefix[start])
                if heaviest < best[groups][end]:
                    best[groups][end], cut[groups][end] = heaviest, start
    sizes: list[int] = []
    end = count
    for groups in range(chunks, 0, -1):
        start = cut[groups][end]
        sizes.append(end - start)
        end = start
    return sizes[::-1]


_EQUAL = 0.01


@dataclass(frozen=True)
class Chunk:
    """Consecutive layers of the network: positions ``first`` to ``last``, the latter excluded.

    Each device sends ``sent_bytes`` of one micro-batch to the next chunk.
    """

    first: int
    last: int
    sent_bytes: float

    @property
    def positions(self) -> range:
        """Positions of its layers."""
        return range(self.first, self.last)


def chunks_of(parts: Partition, times: "DeviceTimes") -> tuple[Chunk, ...]:
    """The pipeline chunks of the network, in order.

    By ``stage_layers`` if given, else by cost with a separate head if the framework does so, else
    equal numbers of equal blocks, else minimising the slowest chunk.
    """
    plan, graph = parts.plan, parts.workload.graph
    units = blocks(graph)
    if not plan.stage_layers and _counts_ends(parts, units):
        units = with_own_ends(units, graph)
    if plan.stage_layers:
        runs = chunks_of_equal_blocks(units, plan.chunks, plan.stage_layers)
    elif parts.framework.stages_by_cost:
        units = with_own_tail(units, graph)
        runs = chunks_by_cost(units, _gemm_flops(parts, units), plan.chunks)
    elif (parts.framework.equal_stages and len(units) % plan.chunks == 0) or _are_equal(
        parts, blocks(graph), times.forward
    ):
        runs = chunks_of_equal_blocks(units, plan.chunks)
    else:
        seconds = _sums(parts, units, times.forward + times.backward + times.recompute)
        runs = balanced_chunks(units, seconds, plan.chunks)
    samples, tp, sharding = parts.share_of_batch, plan.tp, parts.sharding
    return tuple(
        # Each device sends its share of the tensors at the cut.
        Chunk(run.first, run.last, float(crossing_bytes(sharding, run.last).at(samples)) / tp)
        for run in runs
    )


def _counts_ends(parts: Partition, units: Sequence[Block]) -> bool:
    """Whether embedding and head are layers of the pipeline, as Megatron Core allows.

    Only where the blocks alone do not fill equal chunks but blocks, embedding and head do.
    """
    chunks, count = parts.plan.chunks, len(units)
    return (
        parts.framework.interleaves
        and count % chunks != 0
        and (count + ENDS) % chunks == 0
        and not parts.framework.stages_by_cost
    )


def stage_chunks(plan: Plan, chunks: Sequence[Chunk], stage: int) -> list[Chunk]:
    """The chunks of a stage: round-robin, or folded for V-shaped schedules."""
    if plan.pipeline.is_v:
        return [chunks[stage], chunks[2 * plan.pp - 1 - stage]]
    return list(chunks[stage :: plan.pp])


def stage_counts(parts: Partition, chunks: Sequence[Chunk]) -> NDArray[np.float64]:
    """Number of layers of each kind on each pipeline stage (stage, kind)."""
    plan = parts.plan
    runs = (
        [chunk.positions for chunk in stage_chunks(plan, chunks, stage)] for stage in range(plan.pp)
    )
    return np.stack([parts.classes.counts(*own) for own in runs])


def tied_bytes(parts: Partition, chunks: Sequence[Chunk]) -> float:
    """Gradient bytes of weights that layers of two chunks share (tied embeddings)."""
    starts, kind_of = [chunk.first for chunk in chunks], parts.classes.of_layer
    return sum(
        float(parts.kinds[kind_of[owner]].profile.gradient_bytes.at(parts.workload.batch))
        for owner, user in _sharing(parts.workload.graph)
        if bisect_right(starts, owner) != bisect_right(starts, user)
    )


@lru_cache(maxsize=64)
def _sharing(graph: Graph) -> tuple[tuple[int, int], ...]:
    """Positions of layers that own tied weights, each with the position of a second user."""
    positions = {node.name: position for position, node in enumerate(graph.nodes)}
    return tuple(
        (positions[node.shares_weights_with], position)
        for position, node in enumerate(graph.nodes)
        if node.shares_weights_with is not None
    )


def _sums(parts: Partition, units: Sequence[Block], of_kinds: Array) -> list[float]:
    """Sum of values by kind over the layers of each block."""
    own = of_kinds[parts.classes.of_layer].tolist()
    return [sum(own[unit.first : unit.last]) for unit in units]


def _gemm_flops(parts: Partition, units: Sequence[Block]) -> list[float]:
    """FLOP per sample of weight GEMMs in each block, the cost that frameworks count."""
    nodes, layers = parts.workload.graph.nodes, parts.layers
    return [
        sum(
            float(layers[i].profile.forward_flops.per_sample)
            for i in range(unit.first, unit.last)
            if layers[i].profile.tensors or nodes[i].shares_weights_with
        )
        for unit in units
    ]


def _are_equal(parts: Partition, units: Sequence[Block], forward: Array) -> bool:
    """Whether the numbered layers of all blocks take the same time."""
    kind_of = parts.classes.of_layer
    distinct = {
        kind_of[own].tobytes(): own for own in _numbered(parts.workload.graph, tuple(units))
    }
    seconds = [float(forward[kind_of[own]].sum()) for own in distinct.values()]
    return min(seconds) > 0 and max(seconds) <= (1 + _EQUAL) * min(seconds)


@lru_cache(maxsize=64)
def _numbered(graph: Graph, units: tuple[Block, ...]) -> tuple[NDArray[np.intp], ...]:
    """Positions of the numbered layers of each block."""
    return tuple(
        np.array([i for i in range(unit.first, unit.last) if part_of(graph.nodes[i].name)], np.intp)
        for unit in units
    )


@lru_cache(maxsize=4096)
def crossing_bytes(sharding: Sharding, position: int) -> Affine:
    """Bytes of the tensors produced before ``position`` and read at or after it, undivided."""
    nodes = sharding.graph.nodes
    before = {node.name for node in nodes[:position]}
    crossing = {name for node in nodes[position:] for name in node.inputs if name in before}
    return total(sharding.output_bytes(name) for name in sorted(crossing))
