"""The encoder-decoder Transformer (Vaswani et al. 2017) for translation.

One shared table of 37,000 word pieces serves both embeddings and the output; attention has no
biases, positions are sinusoids. Source and target have the same length.
"""

from paceline.workload import ops
from paceline.workload.graph import Graph
from paceline.workload.zoo.builder import NetworkBuilder
from paceline.workload.zoo.transformer_blocks import cross_attention, feed_forward

_VOCABULARY = 37_000
_LAYERS = 6
_DROPOUT = 0.1


def transformer(name: str, hidden: int, heads: int, sequence: int = 256) -> Graph:
    """Six layers each side; base is 512 wide with 8 heads, big 1024 with 16."""
    net = NetworkBuilder(name)
    source = net.integers("source", _VOCABULARY, "sequence")
    target = net.integers("target", _VOCABULARY, "sequence")
    memory = net.embedding("encoder.embedding", source, _VOCABULARY, hidden)
    for layer in range(_LAYERS):
        with net.scope(f"encoder.{layer}"):
            y = cross_attention(net, "self", memory, memory, hidden, heads, bias=False)
            memory = _residual(net, "1", memory, y)
            y = feed_forward(net, memory, hidden, 4 * hidden, "relu")
            memory = _residual(net, "2", memory, y)
    x = net.add_node(
        "decoder.embedding",
        ops.Embedding(_VOCABULARY, hidden),
        target,
        shares="encoder.embedding",
    )
    for layer in range(_LAYERS):
        with net.scope(f"decoder.{layer}"):
            y = cross_attention(net, "self", x, x, hidden, heads, causal=True, bias=False)
            x = _residual(net, "1", x, y)
            y = cross_attention(net, "cross", x, memory, hidden, heads, bias=False)
            x = _residual(net, "2", x, y)
            x = _residual(net, "3", x, feed_forward(net, x, hidden, 4 * hidden, "relu"))
    scores = net.linear("head", x, _VOCABULARY, bias=False, shares="encoder.embedding")
    word = net.integers("word", _VOCABULARY, "sequence")
    dimensions = {"hidden": hidden, "layers": 2 * _LAYERS, "heads": heads}
    return net.build(net.cross_entropy("loss", scores, word), sequence, dimensions)


def _residual(net: NetworkBuilder, number: str, x: str, y: str) -> str:
    y = net.add(f"add{number}", x, net.dropout(f"drop{number}", y, _DROPOUT))
    return net.layer_norm(f"norm{number}", y)
