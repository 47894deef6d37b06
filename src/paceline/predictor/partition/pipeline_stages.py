"""Pipeline chunks of a replica: their layers, and the bytes sent between them."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from paceline.predictor.partition.block_runs import (
    balanced_chunks,
    chunks_by_cost,
    chunks_of_equal_blocks,
    with_own_tail,
)
from paceline.predictor.partition.replica import Replica
from paceline.predictor.partition.sharding import Sharding
from paceline.predictor.plan.plan import Plan
from paceline.workload.blocks import Block, blocks, part_of
from paceline.workload.cost import Affine, total
from paceline.workload.graph import Graph

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


def chunks_of(replica: Replica) -> tuple[Chunk, ...]:
    """The pipeline chunks of a replica, in the order of the network.

    By ``stage_layers`` if given, else by cost with a separate head if the framework does so, else
    equal numbers of equal blocks, else minimising the slowest chunk.
    """
    plan, graph = replica.plan, replica.workload.graph
    parts = blocks(graph)
    if plan.stage_layers:
        runs = chunks_of_equal_blocks(parts, plan.chunks, plan.stage_layers)
    elif replica.framework.stages_by_cost:
        parts = with_own_tail(parts, graph)
        runs = chunks_by_cost(parts, [_product_flops(replica, part) for part in parts], plan.chunks)
    elif _are_equal(replica, parts):
        runs = chunks_of_equal_blocks(parts, plan.chunks)
    else:
        runs = balanced_chunks(parts, _seconds(replica, parts), plan.chunks)
    return tuple(Chunk(run.first, run.last, _sent_bytes(replica, run.last)) for run in runs)


def stage_chunks(plan: Plan, chunks: Sequence[Chunk], stage: int) -> list[Chunk]:
    """The chunks of a stage: round-robin, or folded for V-shaped schedules."""
    if plan.pipeline.is_v:
        return [chunks[stage], chunks[2 * plan.pp - 1 - stage]]
    return list(chunks[stage :: plan.pp])


def stage_counts(replica: Replica, chunks: Sequence[Chunk]) -> NDArray[np.float64]:
    """Number of layers of each kind on each pipeline stage (stage, kind)."""
    plan = replica.plan
    runs = (
        [chunk.positions for chunk in stage_chunks(plan, chunks, stage)] for stage in range(plan.pp)
    )
    return np.stack([replica.layer_classes.counts(*own) for own in runs])


def tied_bytes(replica: Replica, chunks: Sequence[Chunk]) -> float:
    """Gradient bytes of weights that layers of two chunks share (tied embeddings)."""
    starts = [chunk.first for chunk in chunks]
    return sum(
        float(replica.parts[owner].profile.gradient_bytes.at(replica.workload.batch))
        for owner, user in _sharing(replica.workload.graph)
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


def _seconds(replica: Replica, parts: Sequence[Block]) -> list[float]:
    """Computing time of each block."""
    own = [x.forward_seconds + x.backward_seconds + x.recompute_seconds for x in replica.layers]
    return [sum(own[part.first : part.last]) for part in parts]


def _product_flops(replica: Replica, part: Block) -> float:
    """FLOP per sample of weight GEMMs in a block, the cost that frameworks count."""
    graph = replica.workload.graph
    return sum(
        float(replica.parts[i].profile.forward_flops.per_sample)
        for i in range(part.first, part.last)
        if replica.parts[i].profile.tensors or graph.nodes[i].shares_weights_with
    )


def _are_equal(replica: Replica, parts: Sequence[Block]) -> bool:
    """Whether the numbered layers of all blocks take the same time."""
    layers, kind_of = replica.layers, replica.layer_classes.of_layer
    numbered = _numbered(replica.workload.graph, tuple(parts))
    distinct = {kind_of[list(own)].tobytes(): own for own in numbered}
    seconds = [float(sum(layers[i].forward_seconds for i in own)) for own in distinct.values()]
    return min(seconds) > 0 and max(seconds) <= (1 + _EQUAL) * min(seconds)


@lru_cache(maxsize=64)
def _numbered(graph: Graph, parts: tuple[Block, ...]) -> tuple[tuple[int, ...], ...]:
    """Positions of the numbered layers of each block."""
    return tuple(
        tuple(i for i in range(part.first, part.last) if part_of(graph.nodes[i].name))
        for part in parts
    )


@lru_cache(maxsize=4096)
def crossing_bytes(sharding: Sharding, position: int) -> Affine:
    """Bytes of the tensors produced before ``position`` and read at or after it, undivided."""
    nodes = sharding.graph.nodes
    before = {node.name for node in nodes[:position]}
    crossing = {name for node in nodes[position:] for name in node.inputs if name in before}
    return total(sharding.output_bytes(name) for name in sorted(crossing))


def _sent_bytes(replica: Replica, position: int) -> float:
    """Bytes of one micro-batch that each device sends at a cut: its share of the tensors."""
    whole = crossing_bytes(replica.sharding, position).at(replica.share_of_batch)
    return float(whole) / replica.plan.tp
