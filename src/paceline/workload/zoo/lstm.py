"""Recurrent networks: the PTB language model and GNMT."""

from paceline.workload import ops
from paceline.workload.graph import Graph
from paceline.workload.zoo.network_builder import NetworkBuilder

_PTB_VOCABULARY = 10_000
_GNMT_VOCABULARY = 32_320
_GNMT_WIDTH = 1024


def lstm_ptb() -> Graph:
    """The large LSTM of Zaremba et al. 2014 on Penn Treebank, 35 tokens: 66,034,000 parameters."""
    net = NetworkBuilder("lstm_ptb")
    tokens = net.integers("tokens", _PTB_VOCABULARY, "sequence")
    x = net.dropout("dropout1", net.embedding("embedding", tokens, _PTB_VOCABULARY, 1500), 0.65)
    x = net.dropout("dropout2", net.add_node("lstm", ops.Lstm(1500, layers=2), x), 0.65)
    target = net.integers("target", _PTB_VOCABULARY, "sequence")
    loss = net.cross_entropy("loss", net.linear("head", x, _PTB_VOCABULARY), target)
    return net.build(loss, 35, {"hidden": 1500, "layers": 2})


def gnmt_v2() -> Graph:
    """GNMT as in MLPerf and NVIDIA's recipe: four encoder and four decoder layers, width 1024.

    The context of the first decoder layer's attention feeds all later layers; source and target
    have the same length.
    """
    net = NetworkBuilder("gnmt_v2")
    source = net.integers("source", _GNMT_VOCABULARY, "sequence")
    target = net.integers("target", _GNMT_VOCABULARY, "sequence")
    x = net.embedding("encoder.embedding", source, _GNMT_VOCABULARY, _GNMT_WIDTH)
    for layer in range(4):
        with net.scope(f"encoder.{layer}"):
            x = _layer(net, x, bidirectional=layer == 0, residual=layer >= 2)
    memory = x
    embedding = ops.Embedding(_GNMT_VOCABULARY, _GNMT_WIDTH)
    x = net.add_node("decoder.embedding", embedding, target, shares="encoder.embedding")
    with net.scope("decoder.0"):
        x = _layer(net, x)
        context = net.add_node("attention", ops.AdditiveAttention(_GNMT_WIDTH), x, memory)
    for layer in range(1, 4):
        with net.scope(f"decoder.{layer}"):
            x = _layer(net, x, residual=layer >= 2, context=context)
    word = net.integers("word", _GNMT_VOCABULARY, "sequence")
    loss = net.cross_entropy("loss", net.linear("head", x, _GNMT_VOCABULARY), word)
    return net.build(loss, 50, {"hidden": _GNMT_WIDTH, "layers": 8})


def _layer(
    net: NetworkBuilder,
    x: str,
    *,
    bidirectional: bool = False,
    residual: bool = False,
    context: str | None = None,
) -> str:
    y = net.dropout("dropout", x, 0.2)
    if context is not None:
        y = net.concat("join", (y, context), axis=1)
    y = net.add_node("lstm", ops.Lstm(_GNMT_WIDTH, bidirectional=bidirectional), y)
    return net.add("add", y, x) if residual else y
