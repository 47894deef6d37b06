"""What a transformer is trained on: its head and its loss."""

from paceline.workload import ops
from paceline.workload.zoo.builder import NetworkBuilder
from paceline.workload.zoo.transformers.shape import TransformerShape


def trained_on(net: NetworkBuilder, x: str, shape: TransformerShape) -> str:
    """The loss of the shape's head on the last layer; the features where it has none."""
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
    decoder = shape.norm_at != "after_sum"  # scores one token as it is, without a bias
    pooled = _first(net, x) if decoder else _pooled(net, x, shape)
    scores = net.linear("labels", pooled, shape.labels, not decoder)
    return net.cross_entropy("loss", scores, net.integers("label", shape.labels))


def _first(net: NetworkBuilder, x: str) -> str:
    return net.flatten("first_only", net.part("first", x, 0, 0, 1))


def _pooled(net: NetworkBuilder, x: str, shape: TransformerShape) -> str:
    """The first token through one more layer: the pooler of BERT, the classifier of others."""
    y = net.linear("pool", _first(net, x), shape.hidden)
    return net.activation("pool_activation", y, "relu" if not shape.segments else "tanh")
