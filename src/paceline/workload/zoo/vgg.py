"""VGG networks (Simonyan and Zisserman 2015), without batch normalisation."""

from paceline.workload.graph import Graph
from paceline.workload.zoo.network_builder import NetworkBuilder

_CONVOLUTIONS = {11: (1, 1, 2, 2, 2), 13: (2, 2, 2, 2, 2), 16: (2, 2, 3, 3, 3), 19: (2, 2, 4, 4, 4)}


def vgg(depth: int) -> Graph:
    """VGG of 11, 13, 16 or 19 layers on 224 x 224 images."""
    net = NetworkBuilder(f"vgg{depth}")
    x = net.image(3, 224, 224)
    widths = (64, 128, 256, 512, 512)
    for stage, (count, width) in enumerate(zip(_CONVOLUTIONS[depth], widths, strict=True), start=1):
        for number in range(1, count + 1):
            x = net.conv(f"conv{stage}_{number}", x, width, 3, 1, 1, bias=True)
            x = net.activation(f"relu{stage}_{number}", x)
        x = net.max_pool(f"pool{stage}", x, 2, 2)
    x = net.flatten("flatten", x)
    for number in (6, 7):
        x = net.activation(f"relu{number}", net.linear(f"fc{number}", x, 4096))
        x = net.dropout(f"dropout{number}", x, 0.5)
    return net.classifier_loss(net.linear("fc8", x, 1000), classes=1000)
