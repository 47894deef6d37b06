"""Transformer-XL (Dai et al. 2019) on WikiText-103, in the two sizes NVIDIA benchmarks.

Post-norm blocks that attend to a memory of the previous segment, an adaptive softmax tied to
the embedding. Queries are computed for the segment only; every layer has its own biases of
content and position.

Only the feed-forward comes from `paceline.workload.zoo.transformers`. The memory is one more
input of every layer, keys and values are projected from memory and segment together, and attention
and softmax are operations of their own: options that no other network would use.
"""

from dataclasses import dataclass

from paceline.workload import ops
from paceline.workload.graph import Graph
from paceline.workload.zoo.network_builder import NetworkBuilder
from paceline.workload.zoo.transformers import LayerKind, TransformerShape
from paceline.workload.zoo.transformers.transformer_layers import feed_forward

# Words of WikiText-103, and the first word of each further cluster of the adaptive softmax.
_VOCABULARY = 267_735
_CUTOFFS = (19_997, 39_997, 199_997)


@dataclass(frozen=True, slots=True)
class TransformerXlSize:
    """Sizes of a Transformer-XL; each cluster of rarer tokens is ``shrink`` times narrower."""

    hidden: int
    layers: int
    heads: int
    memory: int
    shrink: int
    dropout: float


TRANSFORMER_XL = {
    "transformer_xl_base": TransformerXlSize(512, 16, 8, 192, 1, 0.1),
    "transformer_xl_large": TransformerXlSize(1024, 18, 16, 384, 4, 0.2),
}
"""The sizes of NVIDIA's recipe; large is the paper's."""


def transformer_xl(name: str) -> Graph:
    """Build one of `TRANSFORMER_XL` with its memory (one input per layer) and its loss."""
    net, size = NetworkBuilder(name), TRANSFORMER_XL[name]
    clusters = (_VOCABULARY, size.hidden, _CUTOFFS, size.shrink)
    tokens = net.integers("tokens", _VOCABULARY, "sequence")
    x = net.add_node("embedding", ops.AdaptiveEmbedding(*clusters), tokens)
    x = net.dropout("dropout", x, size.dropout)
    for layer in range(size.layers):
        memory = net.image(size.memory, size.hidden, name=f"memory{layer}")
        with net.scope(f"blocks.{layer}"):
            x = _block(net, x, memory, size)
    x = net.dropout("last_dropout", x, size.dropout)
    target = net.integers("target", _VOCABULARY, "sequence")
    entropy = ops.AdaptiveCrossEntropy(*clusters)
    loss = net.add_node("loss", entropy, x, target, shares="embedding")
    dimensions = {"hidden": size.hidden, "layers": size.layers, "heads": size.heads}
    return net.build(loss, size.memory, dimensions)


def _block(net: NetworkBuilder, x: str, memory: str, size: TransformerXlSize) -> str:
    with net.scope("attention"):
        context = net.concat("context", (memory, x))
        y = net.add_node(
            "scores",
            ops.RelativeAttention(size.heads, size.hidden // size.heads),
            net.linear("query", x, size.hidden, bias=False),
            net.linear("key", context, size.hidden, bias=False),
            net.linear("value", context, size.hidden, bias=False),
        )
        y = net.dropout("dropout", net.linear("out", y, size.hidden, bias=False), size.dropout)
    x = net.layer_norm("norm1", net.add("add1", x, y))
    shape = TransformerShape.multi_head(size.hidden, size.layers, size.heads, activation="relu")
    y = feed_forward(net, x, shape, LayerKind())
    return net.layer_norm("norm2", net.add("add2", x, net.dropout("drop2", y, size.dropout)))
