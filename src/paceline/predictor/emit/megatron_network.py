"""The network of a decoder as flags of Megatron-LM."""

from paceline.workload.blocks import blocks
from paceline.workload.graph import Graph, Node
from paceline.workload.ops import (
    Attention,
    Embedding,
    Linear,
    MixtureOfExperts,
    Multiply,
    PositionEmbedding,
    RmsNorm,
    Rotary,
)


def network_flags(graph: Graph, sequence: int | None) -> list[str]:
    """Flags of a decoder with equal blocks; empty for other networks."""
    parts = blocks(graph)
    # The first block has the nodes before it too; those after the last have no number.
    own = [node for node in graph.nodes if node.name.startswith(f"{parts[-1].name}.")]
    attention = [node.op for node in own if isinstance(node.op, Attention)]
    tokens = [node.op for node in graph.nodes if isinstance(node.op, Embedding)]
    regular = len(parts) > 1 and len({_form(graph, part.name) for part in parts}) == 1
    if not regular or len(attention) != 1 or len(tokens) != 1 or not attention[0].causal:
        return []
    flags = [
        f"--num-layers {len(parts)}",
        f"--hidden-size {tokens[0].width}",
        f"--num-attention-heads {attention[0].heads}",
        f"--kv-channels {attention[0].head_dim}",
        f"--vocab-size {tokens[0].vocabulary}",
    ]
    if attention[0].kv_heads != attention[0].heads:
        flags.append(f"--group-query-attention --num-query-groups {attention[0].kv_heads}")
    flags += _feed_forward(own)
    if any(isinstance(node.op, RmsNorm) for node in own):
        flags.append("--normalization RMSNorm")
    if any(isinstance(node.op, Rotary) for node in own):
        flags.append("--position-embedding-type rope")  # its base is not part of the graph
    if not any(isinstance(node.op, Linear) and node.op.bias for node in own):
        flags.append("--disable-bias-linear")
    if not any(node.shares_weights_with for node in graph.nodes):
        flags.append("--untie-embeddings-and-output-weights")
    positions = [node.op for node in graph.nodes if isinstance(node.op, PositionEmbedding)]
    longest = positions[0].length if positions else sequence
    return [*flags, f"--max-position-embeddings {longest}"]


def _feed_forward(own: list[Node]) -> list[str]:
    """Flags of the feed-forward layers or experts of a block."""
    gated = any(isinstance(node.op, Multiply) for node in own)
    experts = [node.op for node in own if isinstance(node.op, MixtureOfExperts)]
    if experts:
        gated = experts[0].gated
        return [
            f"--num-experts {experts[0].experts} --moe-router-topk {experts[0].top_k}",
            f"--ffn-hidden-size {experts[0].hidden}",
            *(["--swiglu"] if gated else []),
        ]
    widths = [
        node.op.out_features
        for node in own
        if isinstance(node.op, Linear) and node.name.endswith(".mlp.up")
    ]
    return [*(f"--ffn-hidden-size {width}" for width in widths), *(["--swiglu"] if gated else [])]


def _form(graph: Graph, block: str) -> tuple[object, ...]:
    prefix = f"{block}."
    return tuple(node.op for node in graph.nodes if node.name.startswith(prefix))
