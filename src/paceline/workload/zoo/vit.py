"""Vision Transformer (Dosovitskiy et al. 2021)."""

from paceline.workload import ops
from paceline.workload.graph import Graph
from paceline.workload.zoo.builder import NetworkBuilder
from paceline.workload.zoo.transformer_blocks import pre_norm_block


def vit_b_16() -> Graph:
    """ViT-B/16 on 224 x 224 images: 86,567,656."""
    hidden, layers, heads, patches = 768, 12, 12, 14 * 14
    net = NetworkBuilder("vit_b_16")
    x = net.conv("patches", net.image(3, 224, 224), hidden, 16, 16, bias=True)
    x = net.transpose("tokens", net.flatten("flatten", x, 1), 1, 0)
    x = net.add_node("class_token", ops.ClassToken(), x)
    x = net.add_node("positions", ops.PositionEmbedding(patches + 1), x)
    for layer in range(layers):
        with net.scope(f"blocks.{layer}"):
            x = pre_norm_block(net, x, hidden, heads, causal=False, activation="gelu")
    x = net.layer_norm("norm", x)
    x = net.flatten("class_only", net.part("class_position", x, 0, 0, 1))
    return net.classifier_loss(net.linear("head", x, 1000), classes=1000)
