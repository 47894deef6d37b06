"""Face recognition: ResNet-100 and MobileFaceNet with ArcFace (Deng et al. 2019).

The classifier has a row for each person of MS1M. It is one layer of the graph; a plan may divide it
among devices (the partial sums of the publication). The normalisation of rows and features and the
margin are pointwise and left out.
"""

from paceline.workload.graph import Graph
from paceline.workload.zoo.network_builder import NetworkBuilder

_PERSONS = 85_742
_SIDE = 112


def resnet100_arcface() -> Graph:
    """IR-100: 65,156,160 parameters in the network and 512 per person."""
    net = NetworkBuilder("resnet100_arcface")
    x = net.conv_unit("stem", net.image(3, _SIDE, _SIDE), 64, 3, 1, 1, activation="prelu")
    for stage, blocks in enumerate((3, 13, 30, 3)):
        for number in range(blocks):
            with net.scope(f"layer{stage + 1}.{number}"):
                x = _improved_block(net, x, 64 << stage, first=number == 0)
    x = net.flatten("flatten", net.batch_norm("norm", x))
    return _classified(net, net.batch_norm("features", net.linear("fc", x, 512)))


def mobilefacenet_arcface() -> Graph:
    """MobileFaceNet (Chen et al. 2018) with 128 features per face."""
    net = NetworkBuilder("mobilefacenet_arcface")
    x = net.conv_unit("stem", net.image(3, _SIDE, _SIDE), 64, 3, 2, 1, activation="prelu")
    x = net.conv_unit("depthwise", x, 64, 3, 1, 1, groups=64, activation="prelu")
    number = 0
    for out, inner, stride, repeats in (
        (64, 128, 2, 1),
        (64, 128, 1, 4),
        (128, 256, 2, 1),
        (128, 256, 1, 6),
        (128, 512, 2, 1),
        (128, 256, 1, 2),
    ):
        for _ in range(repeats):
            with net.scope(f"blocks.{number}"):
                x = _bottleneck(net, x, out, inner, stride)
            number += 1
    x = net.conv_unit("wide", x, 512, 1, activation="prelu")
    with net.scope("global"):
        x = net.flatten("flatten", net.conv_norm("", x, 512, 7, groups=512))
    return _classified(net, net.batch_norm("features", net.linear("fc", x, 128)))


def _improved_block(net: NetworkBuilder, x: str, width: int, first: bool) -> str:
    """Norm before the first and after both convolutions; the second is strided."""
    stride = 2 if first else 1
    y = net.conv_norm(1, net.batch_norm("norm", x), width, 3, 1, 1)
    y = net.conv_norm(2, net.activation("prelu", y, "prelu"), width, 3, stride, 1)
    if first:
        with net.scope("shortcut"):
            x = net.conv_norm("", x, width, 1, stride)
    return net.add("add", y, x)


def _bottleneck(net: NetworkBuilder, x: str, out: int, inner: int, stride: int) -> str:
    y = net.conv_unit("expand", x, inner, 1, activation="prelu")
    y = net.conv_unit("depthwise", y, inner, 3, stride, 1, groups=inner, activation="prelu")
    with net.scope("project"):
        y = net.conv_norm("", y, out, 1)
    return net.add("add", y, x) if stride == 1 else y


def _classified(net: NetworkBuilder, features: str) -> Graph:
    return net.classifier_loss(net.linear("persons", features, _PERSONS, bias=False), _PERSONS)
