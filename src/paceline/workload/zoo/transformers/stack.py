"""Layers upon layers: embedding, blocks of attention and feed-forward, head."""

from paceline.workload import ops
from paceline.workload.graph import Graph
from paceline.workload.zoo.builder import NetworkBuilder
from paceline.workload.zoo.transformers.attention import attention
from paceline.workload.zoo.transformers.feed_forward import feed_forward
from paceline.workload.zoo.transformers.heads import trained_on
from paceline.workload.zoo.transformers.norms import norm
from paceline.workload.zoo.transformers.shape import LayerKind, TransformerShape
from paceline.workload.zoo.transformers.state_space import state_space


def transformer(name: str, shape: TransformerShape) -> Graph:
    """The graph of an architecture of one stack, with its loss."""
    net = NetworkBuilder(name)
    with net.frozen(shape.adapter_rank > 0):
        x = stack(net, _embedding(net, shape), shape)
        loss = trained_on(net, x, shape)
    return net.build(loss, shape.sequence, shape.dimensions())


def stack(
    net: NetworkBuilder,
    x: str,
    shape: TransformerShape,
    scope: str = "blocks",
    memory: str | None = None,
) -> str:
    """All layers and the norm behind them; with a ``memory`` each attends to that too."""
    for layer in range(shape.layers):
        first = f"{scope}.0.attention.scores" if layer else None
        with net.scope(f"{scope}.{layer}"):
            x = _block(net, x, shape, shape.layer(layer), memory, first)
    if shape.norm_at == "after_sum":
        return x
    return norm(net, "norm" if scope == "blocks" else f"{scope}.norm", x, shape)


def _embedding(net: NetworkBuilder, shape: TransformerShape) -> str:
    tokens = net.integers("tokens", shape.vocabulary, "sequence")
    x = net.embedding("embedding", tokens, shape.vocabulary, shape.hidden)
    if shape.segments:
        segments = net.integers("segments", shape.segments, "sequence")
        table = net.embedding("segment_embedding", segments, shape.segments, shape.hidden)
        x = net.add("add_segments", x, table)
    if shape.learned_positions:
        x = net.add_node("positions", ops.PositionEmbedding(shape.learned_positions), x)
    return norm(net, "embedding_norm", x, shape) if shape.embedding_norm else x


def _block(
    net: NetworkBuilder,
    x: str,
    shape: TransformerShape,
    kind: LayerKind,
    memory: str | None,
    first: str | None,
) -> str:
    if shape.parallel != "no":
        normed = norm(net, "norm1", x, shape)
        second = norm(net, "norm2", x, shape) if shape.parallel == "two_norms" else normed
        mixed = attention(net, normed, shape, kind.window)
        return net.add("add", x, mixed, feed_forward(net, second, shape, kind))
    parts = _Parts(net, shape)
    if kind.mixers:
        y = parts.before("1", x)
        x = parts.after("1", x, [_mixed(net, m, y, shape, kind, first) for m in kind.mixers])
    if memory is not None:
        y = parts.before("_cross", x)
        x = parts.after("_cross", x, [attention(net, y, shape, memory=memory)])
    if kind.feed_forward != "none":
        y = parts.before("2", x)
        x = parts.after("2", x, [feed_forward(net, y, shape, kind)])
    return x


def _mixed(
    net: NetworkBuilder,
    mixer: str,
    x: str,
    shape: TransformerShape,
    kind: LayerKind,
    first: str | None,
) -> str:
    if mixer == "attention":
        return attention(net, x, shape, kind.window, first=first)
    assert shape.state_space is not None
    return state_space(net, x, shape.hidden, shape.state_space)


class _Parts:
    """Writes the norms and the sum round a part of a block."""

    def __init__(self, net: NetworkBuilder, shape: TransformerShape) -> None:
        self._net, self._shape = net, shape

    def before(self, number: str, x: str) -> str:
        if self._shape.norm_at in ("before", "both"):
            return norm(self._net, f"norm{number}", x, self._shape)
        return x

    def after(self, number: str, x: str, made: list[str]) -> str:
        net, shape = self._net, self._shape
        if shape.norm_at == "both":
            made = [norm(net, f"norm{number}_after", y, shape) for y in made]
        elif shape.norm_at == "after":
            made = [norm(net, f"norm{number}", y, shape) for y in made]
        x = net.add(f"add{number}", x, *made)
        return norm(net, f"norm{number}", x, shape) if shape.norm_at == "after_sum" else x
