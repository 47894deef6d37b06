"""Any transformer of one stack, from a description of what its architecture chose."""

from dataclasses import dataclass, replace
from typing import Any, Literal

from paceline.errors import InputError
from paceline.workload import ops
from paceline.workload.graph import Graph
from paceline.workload.zoo.builder import NetworkBuilder


@dataclass(frozen=True, slots=True)
class TransformerShape:
    """Sizes and choices of an architecture.

    ``learned_positions`` and ``segments`` are rows of tables, 0 for none; ``parallel`` blocks
    feed attention and feed-forward from one norm or from two; ``post_norm`` blocks normalise
    after each sum. ``head`` is what it is trained on: next ``tokens``, ``masked`` tokens,
    ``pretraining`` (masked tokens and order of sentences), ``classes``, ``token_classes``,
    ``span`` (where an answer begins and ends), ``order`` of two sentences, or no head at all:
    ``features``. A ``sandwich_norm`` stands after attention and feed-forward too.
    """

    hidden: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    inner: int
    vocabulary: int
    sequence: int
    head: str = "tokens"
    labels: int = 2
    learned_positions: int = 0
    segments: int = 0
    rotary: bool = False
    norm: Literal["layer", "rms"] = "layer"
    norm_bias: bool = True
    norm_of_heads: bool = False
    embedding_norm: bool = False
    sandwich_norm: bool = False
    activation: str = "gelu"
    gated: bool = False
    causal: bool = True
    post_norm: bool = False
    parallel: str = "no"
    joint_projection: bool = False
    query_bias: bool = True
    out_bias: bool = True
    mlp_bias: bool = True
    tied: bool = True
    head_bias: bool = False
    experts: int = 0
    top_k: int = 0

    def __post_init__(self) -> None:
        if self.heads % self.kv_heads:
            raise InputError(f"{self.heads} heads do not divide by {self.kv_heads} key-value heads")

    def replaced(self, **changes: Any) -> "TransformerShape":
        """The same with some choices changed."""
        return replace(self, **changes)


def transformer(name: str, shape: TransformerShape) -> Graph:
    """The graph of an architecture, with its loss."""
    net = NetworkBuilder(name)
    x = _embedding(net, shape)
    for layer in range(shape.layers):
        with net.scope(f"blocks.{layer}"):
            x = _block(net, x, shape)
    if not shape.post_norm:
        x = _norm(net, "norm", x, shape)
    loss = _head(net, x, shape)
    dimensions = {
        "hidden": shape.hidden,
        "layers": shape.layers,
        "heads": shape.heads,
        "kv_heads": shape.kv_heads,
        "feed_forward": shape.inner,
        "vocabulary": shape.vocabulary,
    }
    if shape.experts:
        dimensions |= {"experts": shape.experts, "top_k": shape.top_k}
    return net.build(loss, shape.sequence, dimensions)


def _embedding(net: NetworkBuilder, shape: TransformerShape) -> str:
    tokens = net.integers("tokens", shape.vocabulary, "sequence")
    x = net.embedding("embedding", tokens, shape.vocabulary, shape.hidden)
    if shape.segments:
        segments = net.integers("segments", shape.segments, "sequence")
        table = net.embedding("segment_embedding", segments, shape.segments, shape.hidden)
        x = net.add("add_segments", x, table)
    if shape.learned_positions:
        x = net.add_node("positions", ops.PositionEmbedding(shape.learned_positions), x)
    return _norm(net, "embedding_norm", x, shape) if shape.embedding_norm else x


def _block(net: NetworkBuilder, x: str, shape: TransformerShape) -> str:
    if shape.post_norm:
        x = _norm(net, "norm1", net.add("add1", x, _attention(net, x, shape)), shape)
        return _norm(net, "norm2", net.add("add2", x, _feed_forward(net, x, shape)), shape)
    normed = _norm(net, "norm1", x, shape)
    if shape.parallel == "no":
        x = net.add("add1", x, _after(net, "norm1_after", _attention(net, normed, shape), shape))
        normed = _norm(net, "norm2", x, shape)
        y = _after(net, "norm2_after", _feed_forward(net, normed, shape), shape)
        return net.add("add2", x, y)
    second = _norm(net, "norm2", x, shape) if shape.parallel == "two_norms" else normed
    attended = _attention(net, normed, shape)
    return net.add("add", x, attended, _feed_forward(net, second, shape))


def _after(net: NetworkBuilder, name: str, x: str, shape: TransformerShape) -> str:
    return _norm(net, name, x, shape) if shape.sandwich_norm else x


def _attention(net: NetworkBuilder, x: str, shape: TransformerShape) -> str:
    wide, narrow = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
    with net.scope("attention"):
        query, key, value = _projections(net, x, wide, narrow, shape)
        if shape.norm_of_heads:
            query = _head_norm(net, "query_norm", query, shape.head_dim, wide)
            key = _head_norm(net, "key_norm", key, shape.head_dim, narrow)
        if shape.rotary:
            query = net.add_node("rotary_query", ops.Rotary(shape.head_dim), query)
            key = net.add_node("rotary_key", ops.Rotary(shape.head_dim), key)
        y = net.attention(
            "scores",
            query,
            key,
            value,
            heads=shape.heads,
            kv_heads=shape.kv_heads,
            head_dim=shape.head_dim,
            causal=shape.causal,
        )
        return net.linear("out", y, shape.hidden, shape.out_bias)


def _projections(
    net: NetworkBuilder, x: str, wide: int, narrow: int, shape: TransformerShape
) -> tuple[str, str, str]:
    if not shape.joint_projection:
        return (
            net.linear("query", x, wide, shape.query_bias),
            net.linear("key", x, narrow, shape.query_bias),
            net.linear("value", x, narrow, shape.query_bias),
        )
    joint = net.linear("qkv", x, wide + 2 * narrow, shape.query_bias)
    return (
        net.part("query", joint, 1, 0, wide),
        net.part("key", joint, 1, wide, wide + narrow),
        net.part("value", joint, 1, wide + narrow, wide + 2 * narrow),
    )


def _head_norm(net: NetworkBuilder, name: str, x: str, head_dim: int, width: int) -> str:
    """Normalises every head by itself; one scale serves all heads."""
    apart = net.add_node(f"{name}_heads", ops.Reshape((-1, head_dim)), x)
    y = net.add_node(name, ops.RmsNorm(), apart)
    return net.add_node(f"{name}_joined", ops.Reshape((-1, width)), y)


def _feed_forward(net: NetworkBuilder, x: str, shape: TransformerShape) -> str:
    if shape.experts:
        moe = ops.MixtureOfExperts(shape.experts, shape.top_k, shape.inner, gated=shape.gated)
        return net.add_node("experts", moe, x)
    with net.scope("mlp"):
        first = net.linear("gate" if shape.gated else "up", x, shape.inner, shape.mlp_bias)
        y = net.activation("activation", first, shape.activation)
        if shape.gated:
            up = net.linear("up", x, shape.inner, shape.mlp_bias)
            y = net.add_node("product", ops.Multiply(), y, up)
        return net.linear("down", y, shape.hidden, shape.mlp_bias)


def _norm(net: NetworkBuilder, name: str, x: str, shape: TransformerShape) -> str:
    if shape.norm == "rms":
        return net.add_node(name, ops.RmsNorm(), x)
    return net.layer_norm(name, x, shape.norm_bias)


def _head(net: NetworkBuilder, x: str, shape: TransformerShape) -> str:
    if shape.head == "features":
        return _pooled(net, x, shape) if shape.segments else x
    if shape.head == "span":
        return _classifier(net, x, shape.replaced(head="token_classes", labels=2))
    if shape.head == "order":
        return _classifier(net, x, shape.replaced(head="classes", labels=2))
    if shape.head in ("classes", "token_classes"):
        return _classifier(net, x, shape)
    target = net.integers("target", shape.vocabulary, "sequence")
    if shape.head == "tokens":
        return net.cross_entropy("loss", _word_scores(net, x, shape), target)
    with net.scope("masked"):
        y = net.linear("transform", x, shape.hidden)
        y = net.layer_norm("norm", net.activation("activation", y, shape.activation))
    loss = net.cross_entropy("token_loss", _word_scores(net, y, shape), target)
    if shape.head == "masked":
        return loss
    pooled = _pooled(net, x, shape)
    order = net.linear("order", pooled, 2)
    order_loss = net.cross_entropy("order_loss", order, net.integers("next", 2))
    return net.add_node("loss", ops.WeightedSum((1.0, 1.0)), loss, order_loss)


def _word_scores(net: NetworkBuilder, x: str, shape: TransformerShape) -> str:
    shares = "embedding" if shape.tied else None
    return net.linear("head", x, shape.vocabulary, shape.head_bias, shares=shares)


def _classifier(net: NetworkBuilder, x: str, shape: TransformerShape) -> str:
    if shape.head == "token_classes":
        label = net.integers("label", shape.labels, "sequence")
        return net.cross_entropy("loss", net.linear("labels", x, shape.labels), label)
    bias = shape.post_norm  # decoders score their last token without a bias
    pooled = _pooled(net, x, shape) if shape.post_norm else _first(net, x)
    scores = net.linear("labels", pooled, shape.labels, bias)
    return net.cross_entropy("loss", scores, net.integers("label", shape.labels))


def _first(net: NetworkBuilder, x: str) -> str:
    return net.flatten("first_only", net.part("first", x, 0, 0, 1))


def _pooled(net: NetworkBuilder, x: str, shape: TransformerShape) -> str:
    """The first token through one more layer: the pooler of BERT, the classifier of others."""
    y = net.linear("pool", _first(net, x), shape.hidden)
    return net.activation("pool_activation", y, "relu" if not shape.segments else "tanh")
