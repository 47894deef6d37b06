"""MobileNet v1 and v2: depthwise separable convolutions."""

from paceline.workload.graph import Graph
from paceline.workload.zoo.inverted_residual import InvertedResidual
from paceline.workload.zoo.network_builder import NetworkBuilder


def mobilenet_v1() -> Graph:
    """MobileNet 1.0 on 224 x 224 images (Howard et al. 2017): 4,231,976 parameters."""
    net = NetworkBuilder("mobilenet_v1")
    x = net.conv_unit("stem", net.image(3, 224, 224), 32, 3, 2, 1)
    width = 32
    steps = [(64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2)]
    for number, (out, stride) in enumerate([*steps, *[(512, 1)] * 5, (1024, 2), (1024, 1)]):
        with net.scope(f"block{number}"):
            x = net.conv_unit("depthwise", x, width, 3, stride, 1, groups=width)
            x = net.conv_unit("pointwise", x, out, 1)
        width = out
    scores = net.linear("fc", net.global_avg_pool("pool", x), 1000)
    return net.classifier_loss(scores, classes=1000)


def mobilenet_v2() -> Graph:
    """MobileNet v2 1.0 on 224 x 224 images (Sandler et al. 2018): 3,504,872 parameters."""
    net = NetworkBuilder("mobilenet_v2")
    x = net.conv_unit("stem", net.image(3, 224, 224), 32, 3, 2, 1, activation="relu6")
    width, number = 32, 0
    for expansion, out, repeats, first_stride in (
        (1, 16, 1, 1),
        (6, 24, 2, 2),
        (6, 32, 3, 2),
        (6, 64, 4, 2),
        (6, 96, 3, 1),
        (6, 160, 3, 2),
        (6, 320, 1, 1),
    ):
        for repeat in range(repeats):
            with net.scope(f"block{number}"):
                stride = first_stride if repeat == 0 else 1
                block = InvertedResidual(expansion, activation="relu6")
                x = block.write(net, x, width, out, stride)
            width, number = out, number + 1
    x = net.conv_unit("head", x, 1280, 1, activation="relu6")
    x = net.dropout("dropout", net.global_avg_pool("pool", x), 0.2)
    return net.classifier_loss(net.linear("fc", x, 1000), classes=1000)
