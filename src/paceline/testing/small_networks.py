"""Networks of a few hundred weights that together use every operation of the workers.

Each represents a family of the zoo.
"""

from collections.abc import Callable

from paceline.workload import Graph, ops
from paceline.workload.zoo.gpt import gpt
from paceline.workload.zoo.llama import llama
from paceline.workload.zoo.network_builder import NetworkBuilder
from paceline.workload.zoo.sizes import GptSize, LlamaSize
from paceline.workload.zoo.transformers import TransformerShape, stack

VOCABULARY = 61
LENGTH = 6
"""Vocabulary and sequence length of the small networks."""

CLASSES = 10


def small_images() -> Graph:
    """Grouped and depthwise convolutions, response norm, pools that round up, gates, two losses."""
    net = NetworkBuilder("small_images")
    x = net.conv("conv1", net.image(3, 15, 13), 8, 3, 2, 1, bias=True)
    x = net.max_pool("pool1", net.activation("relu1", x), 3, 2, ceil=True)
    x = net.add_node("response", ops.LocalResponseNorm(5), x)
    y = net.activation("relu6", net.conv("depthwise", x, 8, 3, 1, 1, groups=8), "relu6")
    z = net.activation("silu", net.conv("grouped", x, 8, 3, 1, 1, groups=2, bias=True), "silu")
    x = net.concat("join", (y, z))
    gate = net.activation("gate", net.linear("squeeze", net.global_avg_pool("mean", x), 16), "tanh")
    gate = net.activation("open", net.linear("excite", gate, 16), "sigmoid")
    x = net.add_node("gated", ops.Multiply(), x, gate)
    label = net.integers("label", CLASSES)
    side = net.linear(
        "side.head", net.flatten("side.flat", net.avg_pool("side.pool", x, 2, 1)), CLASSES
    )
    side_loss = net.cross_entropy("side.loss", side, label)
    x = net.conv("strided", x, 16, 3, 2, 1, groups=16)
    scores = net.linear("head", net.global_avg_pool("pool", x), CLASSES)
    losses = (net.cross_entropy("main.loss", scores, label), side_loss)
    return net.build(net.add_node("loss", ops.WeightedSum((1.0, 0.3)), *losses))


def small_vision_transformer() -> Graph:
    """Patches as tokens after a class token, with full attention."""
    net = NetworkBuilder("small_vision_transformer")
    x = net.conv("patches", net.image(3, 8, 12), 16, 4, 4, bias=True)
    x = net.transpose("tokens", net.flatten("flatten", x, 1), 1, 0)
    x = net.add_node("class_token", ops.ClassToken(), x)
    x = net.add_node("positions", ops.PositionEmbedding(7), x)
    x = stack(net, x, TransformerShape.multi_head(16, 1, 2, causal=False, joint_projection=True))
    x = net.flatten("class_only", net.part("class_position", x, 0, 0, 1))
    return net.classifier_loss(net.linear("head", x, CLASSES), CLASSES)


def small_recurrent() -> Graph:
    """A bidirectional LSTM, then two layers of a unidirectional one."""
    net = NetworkBuilder("small_recurrent")
    x = net.embedding("embedding", net.integers("tokens", VOCABULARY, "sequence"), VOCABULARY, 12)
    x = net.add_node("both_ways", ops.Lstm(8, bidirectional=True), x)
    x = net.linear("head", net.add_node("lstm", ops.Lstm(16, layers=2), x), VOCABULARY)
    target = net.integers("target", VOCABULARY, "sequence")
    return net.build(net.cross_entropy("loss", x, target), LENGTH)


def small_ratings() -> Graph:
    """Elementwise products and perceptrons of two embeddings, with an elementwise loss."""
    net = NetworkBuilder("small_ratings")
    user, item = net.integers("user", 31), net.integers("item", 29)
    product = net.add_node(
        "product",
        ops.Multiply(),
        net.embedding("factors.user", user, 31, 8),
        net.embedding("factors.item", item, 29, 8),
    )
    both = net.concat("both", (product, net.embedding("second.user", user, 31, 4)))
    score = net.linear("score", net.activation("relu", net.linear("fc", both, 8)), 1)
    clicked = net.image(1, name="clicked")
    function = ops.ElementwiseLoss("binary_cross_entropy")
    return net.build(net.add_node("loss", function, score, clicked))


SMALL_NETWORKS: dict[str, Callable[[], Graph]] = {
    "small_images": small_images,
    "small_vision_transformer": small_vision_transformer,
    "small_gpt": lambda: gpt("small_gpt", GptSize(16, 2, 2, VOCABULARY, LENGTH)),
    "small_llama": lambda: llama(
        "small_llama", LlamaSize(16, 1, 4, 2, 24, VOCABULARY, LENGTH, tied=True)
    ),
    "small_recurrent": small_recurrent,
    "small_ratings": small_ratings,
}
"""Every small network by its name."""
