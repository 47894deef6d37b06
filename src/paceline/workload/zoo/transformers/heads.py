"""Heads of transformers and their losses."""

from paceline.workload import ops
from paceline.workload.zoo.builder import NetworkBuilder
from paceline.workload.zoo.transformers.norms import dropout
from paceline.workload.zoo.transformers.shape import TransformerShape


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
        y = net.linear("transform", scored, shape.hidden)
        y = net.layer_norm("norm", net.activation("activation", y, shape.activation))
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
