"""Image and text encoders trained to agree: CLIP (Radford 2021), SigLIP (Zhai 2023)."""

from paceline.workload import ops
from paceline.workload.graph import Graph
from paceline.workload.zoo.network_builder import NetworkBuilder
from paceline.workload.zoo.transformers.shape import TransformerShape
from paceline.workload.zoo.transformers.stack import embedding, stack
from paceline.workload.zoo.transformers.transformer_layers import attention, feed_forward


def two_towers(
    name: str, text: TransformerShape, image: TransformerShape, side: int, patch: int, width: int
) -> Graph:
    """Build both encoders and the distance of their vectors of ``width``.

    CLIP has a class token and projections without bias; SigLIP, whose
    text is not causal, pools patches by attention. The matrix of similarities of a batch and its
    scale are left out.
    """
    net, is_clip = NetworkBuilder(name), text.causal
    with net.scope("image"):
        pixels = net.image(3, side, side, name="image")
        x = net.conv("patches", pixels, image.hidden, patch, patch, bias=not is_clip)
        x = net.transpose("tokens", net.flatten("flatten", x, 1), 1, 0)
        if is_clip:
            x = net.add_node("class_token", ops.ClassToken(), x)
        rows = (side // patch) ** 2 + is_clip
        x = net.add_node("positions", ops.PositionEmbedding(rows), x)
        if is_clip:
            x = net.layer_norm("first_norm", x)
    x = stack(net, x, image, "image.blocks")
    with net.scope("image"):
        x = net.part("class_position", x, 0, 0, 1) if is_clip else _pooled(net, x, image)
        pictured = net.flatten("class_only", x)
        if is_clip:
            pictured = net.linear("projection", pictured, width, bias=False)
    y = stack(net, embedding(net, text, prefix="text."), text, "text.blocks")
    with net.scope("text"):
        y = net.flatten("last_only", net.part("last_position", y, 0, 0, 1))
        written = net.linear("projection", y, width, bias=not is_clip)
    loss = net.elementwise_loss("loss", "smooth_l1", pictured, written)
    dimensions = text.dimensions() | {"layers": text.layers + image.layers}
    return net.build(loss, text.sequence, dimensions)


def _pooled(net: NetworkBuilder, x: str, shape: TransformerShape) -> str:
    """Attention of one trained query to all patches, then a feed-forward."""
    query = net.part("query_only", net.add_node("query", ops.ClassToken(), x), 0, 0, 1)
    pooled = attention(net, query, shape, memory=x)
    y = feed_forward(net, net.layer_norm("pool_norm", pooled), shape, shape.layer(0))
    return net.add("pool_sum", pooled, y)
