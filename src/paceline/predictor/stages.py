"""Cutting a replica into pipeline chunks: which layers each has and what crosses the cuts."""

from collections.abc import Sequence
from dataclasses import dataclass

from paceline.plan.blocks import (
    Block,
    balanced_chunks,
    blocks,
    chunks_by_cost,
    chunks_of_equal_blocks,
    part_of,
    with_own_tail,
)
from paceline.plan.sharding import Sharding
from paceline.predictor.replica import Replica
from paceline.predictor.step_costs import LayerTime
from paceline.workload.cost import Affine, total

_EQUAL = 0.01


@dataclass(frozen=True)
class Chunk:
    """Consecutive layers of the network: positions ``first`` to ``last``, the latter excluded.

    ``sent_bytes`` of one micro-batch cross to the next chunk from each device.
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

    As ``stage_layers`` says, or as the framework does it: by what blocks cost, the head apart;
    or networks of equal blocks into equally many, others such that the slowest chunk is as quick
    as it can be.
    """
    plan, graph = replica.plan, replica.workload.graph
    parts = blocks(graph)
    seconds = [_seconds(replica.layers, part) for part in parts]
    if plan.stage_layers:
        runs = chunks_of_equal_blocks(parts, plan.chunks, plan.stage_layers)
    elif replica.framework.stages_by_cost:
        parts = with_own_tail(parts, graph)
        runs = chunks_by_cost(parts, [_product_flops(replica, part) for part in parts], plan.chunks)
    elif _are_equal(replica, parts):
        runs = chunks_of_equal_blocks(parts, plan.chunks)
    else:
        runs = balanced_chunks(parts, seconds, plan.chunks)
    return tuple(Chunk(run.first, run.last, _sent_bytes(replica, run.last)) for run in runs)


def tied_bytes(replica: Replica, chunks: Sequence[Chunk]) -> float:
    """Gradient bytes of weights that layers of two chunks share (tied embeddings)."""
    graph = replica.workload.graph
    place = {
        graph.nodes[position].name: (number, position)
        for number, chunk in enumerate(chunks)
        for position in chunk.positions
    }
    shared = 0.0
    for node in graph.nodes:
        owner = node.shares_weights_with
        if owner is not None and place[owner][0] != place[node.name][0]:
            size = replica.parts[place[owner][1]].profile.gradient_bytes
            shared += float(size.at(replica.workload.batch))
    return shared


def _seconds(layers: Sequence[LayerTime], part: Block) -> float:
    return sum(
        layer.forward_seconds + layer.backward_seconds + layer.recompute_seconds
        for layer in layers[part.first : part.last]
    )


def _product_flops(replica: Replica, part: Block) -> float:
    """FLOP per sample of the products with weights in a block, as frameworks count its cost."""
    graph = replica.workload.graph
    return sum(
        float(replica.parts[i].profile.forward_flops.per_sample)
        for i in range(part.first, part.last)
        if replica.parts[i].profile.tensors or graph.nodes[i].shares_weights_with
    )


def _are_equal(replica: Replica, parts: Sequence[Block]) -> bool:
    """Whether the numbered layers of all blocks take the same time."""
    nodes, layers = replica.workload.graph.nodes, replica.layers
    seconds = [
        sum(layers[i].forward_seconds for i in range(p.first, p.last) if part_of(nodes[i].name))
        for p in parts
    ]
    return min(seconds) > 0 and max(seconds) <= (1 + _EQUAL) * min(seconds)


def crossing_bytes(sharding: Sharding, position: int) -> Affine:
    """Bytes of the tensors made before ``position`` and read at or after it, undivided."""
    nodes = sharding.graph.nodes
    before = {node.name for node in nodes[:position]}
    crossing = {name for node in nodes[position:] for name in node.inputs if name in before}
    return total(sharding.output_bytes(name) for name in sorted(crossing))


def _sent_bytes(replica: Replica, position: int) -> float:
    """Bytes of one micro-batch that each device sends at a cut: its part of the tensors."""
    whole = crossing_bytes(replica.sharding, position).at(replica.share_of_batch)
    return float(whole) / replica.plan.tp
