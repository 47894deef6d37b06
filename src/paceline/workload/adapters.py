"""Low-rank adapters (LoRA, Hu et al. 2021) beside the linear layers of any transformer."""

from dataclasses import replace
from functools import lru_cache

from paceline.errors import InputError
from paceline.workload.graph import Graph, Node
from paceline.workload.ops import Add, Attention, CrossEntropy, Linear

QUANTISED_BYTES = 0.5 + 0.127 / 8.0
"""A frozen weight in 4 bits with scales that are quantised too (Dettmers et al. 2023, QLoRA)."""

_INTO = "_adapter_in"


@lru_cache(maxsize=32)
def with_adapters(graph: Graph, rank: int) -> Graph:
    """The same network with its weights frozen and a trained pair of narrow matrices beside each
    linear layer but the output layer, ``rank`` wide inside.
    """
    if not any(isinstance(node.op, Attention) for node in graph.nodes):
        raise InputError(
            f"adapters are put beside the linear layers of transformers, and {graph.name} is none",
            "leave --lora and --qlora out",
        )
    if any(node.frozen for node in graph.nodes):
        raise InputError(f"{graph.name} has frozen weights already", "leave --lora and --qlora out")
    heads = {
        name for node in graph.nodes if isinstance(node.op, CrossEntropy) for name in node.inputs
    }
    nodes: list[Node] = []
    renamed: dict[str, str] = {}
    for node in graph.nodes:
        reads = tuple(renamed.get(name, name) for name in node.inputs)
        nodes.append(replace(node, inputs=reads, frozen=True))
        if isinstance(node.op, Linear) and node.name not in heads:
            nodes += _adapter(node.name, node.op, reads, rank)
            renamed[node.name] = nodes[-1].name
    output = renamed.get(graph.output, graph.output)
    return replace(graph, name=f"{graph.name}_lora{rank}", nodes=tuple(nodes), output=output)


def _adapter(name: str, op: Linear, reads: tuple[str, ...], rank: int) -> list[Node]:
    down, up = f"{name}{_INTO}", f"{name}_adapter_out"
    return [
        Node(down, Linear(rank, bias=False), reads),
        Node(up, Linear(op.out_features, bias=False), (down,)),
        Node(f"{name}_adapted", Add(), (name, up)),
    ]


def adapter_rank(graph: Graph) -> int | None:
    """The rank that `with_adapters` was given; None of other networks."""
    for node in graph.nodes:
        if node.name.endswith(_INTO) and isinstance(node.op, Linear):
            return node.op.out_features
    return None
