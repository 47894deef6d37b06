"""Low-rank adapters (LoRA, Hu et al. 2021) for the linear layers of any transformer."""

from dataclasses import replace
from functools import lru_cache

from paceline.errors import InputError
from paceline.workload.graph import Graph, Node
from paceline.workload.ops import Add, Attention, CrossEntropy, Linear, MixtureOfExperts

QUANTISED_BYTES = 0.5 + 0.127 / 8.0
"""Bytes of a 4-bit weight with double quantisation of its scales (QLoRA, Dettmers et al. 2023).

One 8-bit scale per 64 weights and one 32-bit scale per 256 of these: 8 / 64 + 32 / (64 * 256) =
0.127 bits per weight.
"""
WHOLE_BYTES = 2.0
"""Bytes of a frozen weight that is not quantised: embeddings, norms, output layer."""

_INTO = "_adapter_in"


@lru_cache(maxsize=32)
def with_adapters(graph: Graph, rank: int, layers: tuple[str, ...] = ()) -> Graph:
    """Freeze all weights and add adapters of ``rank`` to linear layers but the output layer.

    ``layers`` are the last parts of the names of those that have adapters; if the network has none
    of these, or without ``layers``, all have.
    """
    if not any(isinstance(node.op, Attention) for node in graph.nodes):
        raise InputError(
            f"adapters need a transformer; {graph.name} has no attention",
            "omit --lora and --qlora",
        )
    if any(node.frozen for node in graph.nodes):
        raise InputError(f"{graph.name} already has frozen weights", "omit --lora and --qlora")
    heads = {
        name for node in graph.nodes if isinstance(node.op, CrossEntropy) for name in node.inputs
    }
    linear = {
        node.name for node in graph.nodes if isinstance(node.op, Linear) and node.name not in heads
    }
    chosen = {name for name in linear if name.rpartition(".")[2] in layers} or linear
    nodes: list[Node] = []
    renamed: dict[str, str] = {}
    for node in graph.nodes:
        reads = tuple(renamed.get(name, name) for name in node.inputs)
        nodes.append(replace(node, inputs=reads, frozen=True))
        if isinstance(node.op, Linear) and node.name in chosen:
            nodes += _adapter(node.name, node.op, reads, rank)
            renamed[node.name] = nodes[-1].name
    output = renamed.get(graph.output, graph.output)
    return replace(graph, name=f"{graph.name}_lora{rank}", nodes=tuple(nodes), output=output)


@lru_cache(maxsize=64)
def are_quantised(graph: Graph, positions: tuple[int, ...]) -> tuple[bool, ...]:
    """Whether the frozen weights of layers are quantised: linear layers and experts.

    bitsandbytes replaces linear layers except the output layer (``lm_head``); embeddings and norms
    keep 16 bits.
    """
    heads = {
        name for node in graph.nodes if isinstance(node.op, CrossEntropy) for name in node.inputs
    }
    nodes = [graph.nodes[position] for position in positions]
    return tuple(
        isinstance(node.op, Linear | MixtureOfExperts) and node.name not in heads for node in nodes
    )


def _adapter(name: str, op: Linear, reads: tuple[str, ...], rank: int) -> list[Node]:
    down, up = f"{name}{_INTO}", f"{name}_adapter_out"
    return [
        Node(down, Linear(rank, bias=False), reads),
        Node(up, Linear(op.out_features, bias=False), (down,)),
        Node(f"{name}_adapted", Add(), (name, up)),
    ]


def adapter_rank(graph: Graph) -> int | None:
    """The rank of adapters added by `with_adapters`; None for other networks."""
    for node in graph.nodes:
        if node.name.endswith(_INTO) and isinstance(node.op, Linear):
            return node.op.out_features
    return None
