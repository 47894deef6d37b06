"""Embedding, blocks, head and loss of a transformer."""

from paceline.workload import ops
from paceline.workload.graph import Graph
from paceline.workload.zoo.network_builder import NetworkBuilder
from paceline.workload.zoo.transformers.linear_attention import linear_attention
from paceline.workload.zoo.transformers.mamba import state_space
from paceline.workload.zoo.transformers.shape import LayerKind, TransformerShape
from paceline.workload.zoo.transformers.transformer_layers import (
    attention,
    dropout,
    feed_forward,
    norm,
)


def transformer(name: str, shape: TransformerShape) -> Graph:
    """Build an architecture of one stack with its loss."""
    net = NetworkBuilder(name)
    with net.frozen(shape.adapter_rank > 0):
        x = stack(net, embedding(net, shape), shape)
        loss = training_loss(net, x, shape)
        if shape.further_kinds and shape.head == "tokens":
            loss = _with_further_token(net, x, loss, shape)
    return net.build(loss, shape.sequence, shape.dimensions())


def stack(
    net: NetworkBuilder,
    x: str,
    shape: TransformerShape,
    scope: str = "blocks",
    memory: str | None = None,
) -> str:
    """Add all layers and the final norm; with a ``memory`` each layer has cross-attention."""
    for layer in range(shape.layers):
        first = f"{scope}.0.attention.scores" if layer else None
        with net.scope(f"{scope}.{layer}"):
            x = _block(net, x, shape, shape.layer(layer), memory, first)
    if shape.norm_at == "after_sum":
        return x
    return norm(net, "norm" if scope == "blocks" else f"{scope}.norm", x, shape)


def _with_further_token(net: NetworkBuilder, x: str, loss: str, shape: TransformerShape) -> str:
    """Add the prediction of the token after the next one (arXiv 2412.19437, section 2.2)."""
    with net.scope("further"):
        both = [norm(net, "norm_hidden", x, shape), norm(net, "norm_token", "embedding", shape)]
        y = net.linear("projection", net.concat("joined", both, 1), shape.hidden, bias=False)
        for index, kind in enumerate(shape.further_kinds):
            with net.scope(f"layer{chr(ord('a') + index)}"):
                y = _block(net, y, shape, kind, None, None)
        y = norm(net, "norm", y, shape)
        scores = net.linear("head", y, shape.vocabulary, shares="head", bias=False)
        own = net.cross_entropy("loss", scores, "target")
    return net.add_node("both_losses", ops.WeightedSum((1.0, 1.0)), loss, own)


def embedding(
    net: NetworkBuilder,
    shape: TransformerShape,
    tokens: str = "tokens",
    prefix: str = "",
    shares: str | None = None,
) -> str:
    """Add the input ``tokens`` and its embedding, whose table may be that of node ``shares``."""
    net.integers(tokens, shape.vocabulary, "sequence")
    table = ops.Embedding(shape.vocabulary, shape.hidden)
    x = net.add_node(f"{prefix}embedding", table, tokens, shares=shares)
    if shape.segments:
        segments = net.integers("segments", shape.segments, "sequence")
        rows = net.embedding("segment_embedding", segments, shape.segments, shape.hidden)
        x = net.add("add_segments", x, rows)
    if shape.learned_positions:
        positions = ops.PositionEmbedding(shape.learned_positions)
        x = net.add_node(f"{prefix}positions", positions, x)
    if not shape.embedding_norm:
        return x
    x = norm(net, f"{prefix}embedding_norm", x, shape)
    return dropout(net, f"{prefix}embedding_dropout", x, shape)


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
    residual = _Residual(net, shape)
    if kind.mixers:
        y = x if first is None and not shape.first_norm else residual.before("1", x)
        x = residual.after("1", x, [_mixed(net, m, y, shape, kind, first) for m in kind.mixers])
    if memory is not None:
        y = residual.before("_cross", x)
        x = residual.after("_cross", x, [attention(net, y, shape, memory=memory)])
    if kind.feed_forward != "none":
        y = residual.before("2", x)
        x = residual.after("2", x, [feed_forward(net, y, shape, kind)])
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
    if mixer == "linear":
        assert shape.linear is not None
        return linear_attention(net, x, shape.hidden, shape.linear)
    assert shape.state_space is not None
    return state_space(net, x, shape.hidden, shape.state_space)


class _Residual:
    """Norms and residual sum around attention or feed-forward."""

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
        made = [dropout(net, f"drop{number}", y, shape) for y in made]
        x = net.add(f"add{number}", x, *made)
        return norm(net, f"norm{number}", x, shape) if shape.norm_at == "after_sum" else x


def training_loss(net: NetworkBuilder, x: str, shape: TransformerShape) -> str:
    """Add the head and its loss; return the features if the shape has no head."""
    if shape.head == "features":
        return _pooled(net, x, shape) if shape.segments else x
    if shape.head == "span":
        return _classifier(net, x, shape.replaced(head="token_classes", labels=2))
    if shape.head == "order":
        return _classifier(net, x, shape.replaced(head="classes", labels=2))
    if shape.head in ("classes", "token_classes"):
        return _classifier(net, x, shape)
    target = net.integers("target", shape.vocabulary, shape.scored_positions or "sequence")
    if shape.head == "tokens":
        return net.cross_entropy("loss", _token_scores(net, x, shape), target)
    scored = net.part("scored", x, 0, 0, shape.scored_positions) if shape.scored_positions else x
    with net.scope("masked"):
        y = net.linear("transform", scored, shape.hidden, shape.norm_bias)
        y = net.activation("activation", y, shape.activation)
        y = net.layer_norm("norm", y, shape.norm_bias)
    scores = _token_scores(net, y, shape)
    if shape.head == "masked":
        return net.cross_entropy("token_loss", scores, target)
    order = net.linear("order", _pooled(net, x, shape), 2)
    loss = net.cross_entropy("token_loss", scores, target)
    order_loss = net.cross_entropy("order_loss", order, net.integers("next", 2))
    return net.add_node("loss", ops.WeightedSum((1.0, 1.0)), loss, order_loss)


def _token_scores(net: NetworkBuilder, x: str, shape: TransformerShape) -> str:
    shares = "embedding" if shape.tied else None
    return net.linear("head", x, shape.vocabulary, shape.head_bias, shares=shares)


def _classifier(net: NetworkBuilder, x: str, shape: TransformerShape) -> str:
    if shape.head == "token_classes":
        label = net.integers("label", shape.labels, "sequence")
        x = dropout(net, "dropout", x, shape)
        return net.cross_entropy("loss", net.linear("labels", x, shape.labels), label)
    decoder = shape.norm_at != "after_sum"  # Hugging Face scores one token without pooler and bias
    pooled = _first(net, x) if decoder else _pooled(net, x, shape)
    scores = net.linear("labels", pooled, shape.labels, not decoder)
    return net.cross_entropy("loss", scores, net.integers("label", shape.labels))


def _first(net: NetworkBuilder, x: str) -> str:
    return net.flatten("first_only", net.part("first", x, 0, 0, 1))


def _pooled(net: NetworkBuilder, x: str, shape: TransformerShape) -> str:
    """The first token through a dense layer: the pooler of BERT (tanh), others with ReLU."""
    y = net.linear("pool", _first(net, x), shape.hidden)
    return net.activation("pool_activation", y, "relu" if not shape.segments else "tanh")
