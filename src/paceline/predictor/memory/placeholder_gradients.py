"""Unused weight gradients of programs whose GEMMs add gradients to fp32 buffers themselves.

Autograd still receives a gradient in the format of the weights. Transformer Engine caches one per
shape of a weight (``get_dummy_wgrad``) and keeps it; Megatron Core's output layer allocates its own
in every backward pass.
"""

from collections.abc import Sequence
from functools import lru_cache

from paceline.predictor.memory.loss_memory import output_layer_elements
from paceline.predictor.partition.partition import Partition
from paceline.predictor.partition.sharding import ShardedLayer
from paceline.workload.blocks import part_of
from paceline.workload.cost import Number
from paceline.workload.graph import Graph
from paceline.workload.ops import Linear, MixtureOfExperts


def has_placeholders(parts: Partition) -> bool:
    """Whether the framework accumulates gradients in fp32 in the GEMMs of 16-bit weights."""
    widths = parts.precision
    return parts.framework.placeholder_gradients and widths.gradient_bytes > widths.weight_bytes


def placeholder_bytes(
    graph: Graph, kinds: Sequence[ShardedLayer], of_layer: Sequence[int], ep: int, width: float
) -> float:
    """Gradients that are kept: one per linear layer of a block, one per matrix of an expert.

    Blocks share them, as their weights have equal shapes. ``of_layer`` is the kind of each layer.
    """
    sizes: dict[str, float] = {}
    named = zip(_names_in_blocks(graph), of_layer, strict=True)
    for (name, kind), node in dict(zip(named, graph.nodes, strict=True)).items():
        layer = kinds[kind]
        if name and layer.profile.tensors:
            sizes[name] = max(sizes.get(name, 0.0), width * _elements(node.op, layer, ep))
    return sum(sizes.values())


@lru_cache(maxsize=64)
def _names_in_blocks(graph: Graph) -> tuple[str, ...]:
    """Name of each layer without that of its block; empty outside blocks."""
    return tuple(n.name[len(part) :] if (part := part_of(n.name)) else "" for n in graph.nodes)


def _elements(op: object, layer: ShardedLayer, ep: int) -> float:
    tensors = layer.profile.tensors
    if isinstance(op, Linear):
        return float(sum(size for name, size in tensors if name == "weight"))
    if isinstance(op, MixtureOfExperts):
        held = sum(size for name, size in tensors if not name.startswith("router"))
        return float(held) / (op.experts / ep)
    return 0.0


def output_placeholder_bytes(parts: Partition, tp: Number) -> float:
    """The unused gradient of the output layer, which exists while its backward runs."""
    if not has_placeholders(parts):
        return 0.0
    return float(output_layer_elements(parts.sharding) / tp * parts.precision.weight_bytes)
