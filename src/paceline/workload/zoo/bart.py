"""BART (Lewis et al. 2020): an encoder and a decoder that learn positions, one shared table.

Source and target have the same length.
"""

from dataclasses import dataclass

from paceline.workload import ops
from paceline.workload.graph import Graph
from paceline.workload.zoo.builder import NetworkBuilder
from paceline.workload.zoo.transformer_blocks import cross_attention, feed_forward

_VOCABULARY = 50_265
_POSITIONS = 1026
"""1,024 and two that are never used."""
_DROPOUT = 0.1


@dataclass(frozen=True, slots=True)
class BartSize:
    """Width, layers on each side, and heads."""

    hidden: int
    layers: int
    heads: int


BART = {"bart_base": BartSize(768, 6, 12), "bart_large": BartSize(1024, 12, 16)}
"""The published sizes: 139,420,416 and 406,291,456 weights."""


def bart(name: str) -> Graph:
    """One of `BART` with its loss over every word of the target."""
    net, size = NetworkBuilder(name), BART[name]
    memory = _embedded(net, "encoder", "source", size)
    for layer in range(size.layers):
        with net.scope(f"encoder.{layer}"):
            memory = _attended(net, "self", memory, memory, size)
            memory = _fed_forward(net, memory, size)
    x = _embedded(net, "decoder", "target", size, shares="encoder.embedding.words")
    for layer in range(size.layers):
        with net.scope(f"decoder.{layer}"):
            x = _attended(net, "self", x, x, size, causal=True)
            x = _attended(net, "cross", x, memory, size)
            x = _fed_forward(net, x, size)
    scores = net.linear("head", x, _VOCABULARY, bias=False, shares="encoder.embedding.words")
    word = net.integers("word", _VOCABULARY, "sequence")
    dimensions = {"hidden": size.hidden, "layers": 2 * size.layers, "heads": size.heads}
    return net.build(net.cross_entropy("loss", scores, word), 1024, dimensions)


def _embedded(
    net: NetworkBuilder, side: str, name: str, size: BartSize, shares: str | None = None
) -> str:
    tokens = net.integers(name, _VOCABULARY, "sequence")
    with net.scope(f"{side}.embedding"):
        table = ops.Embedding(_VOCABULARY, size.hidden)
        x = net.add_node("words", table, tokens, shares=shares)
        x = net.add_node("positions", ops.PositionEmbedding(_POSITIONS), x)
        return net.dropout("dropout", net.layer_norm("norm", x), _DROPOUT)


def _attended(
    net: NetworkBuilder, name: str, x: str, memory: str, size: BartSize, causal: bool = False
) -> str:
    y = cross_attention(net, name, x, memory, size.hidden, size.heads, causal=causal)
    return _joined(net, name, x, y)


def _fed_forward(net: NetworkBuilder, x: str, size: BartSize) -> str:
    return _joined(net, "ffn", x, feed_forward(net, x, size.hidden, 4 * size.hidden, "gelu"))


def _joined(net: NetworkBuilder, name: str, x: str, y: str) -> str:
    y = net.add(f"{name}_add", x, net.dropout(f"{name}_dropout", y, _DROPOUT))
    return net.layer_norm(f"{name}_norm", y)
