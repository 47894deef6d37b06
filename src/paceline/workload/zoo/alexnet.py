"""AlexNet, in one column and as published."""

from paceline.workload import ops
from paceline.workload.graph import Graph
from paceline.workload.zoo.network_builder import NetworkBuilder


def alexnet() -> Graph:
    """AlexNet in one column (Krizhevsky 2014), as PyTorch distributes it: 61,100,840 parameters."""
    net = NetworkBuilder("alexnet")
    x = net.image(3, 224, 224)
    layers = ((64, 11, 4, 2, True), (192, 5, 1, 2, True), (384, 3, 1, 1, False))
    for number, (width, kernel, stride, padding, pool) in enumerate(
        (*layers, (256, 3, 1, 1, False), (256, 3, 1, 1, True)), start=1
    ):
        x = net.conv(f"conv{number}", x, width, kernel, stride, padding, bias=True)
        x = net.activation(f"relu{number}", x)
        if pool:
            x = net.max_pool(f"pool{number}", x, 3, 2)
    x = net.flatten("flatten", x)
    for number in (6, 7):
        x = net.dropout(f"dropout{number}", x, 0.5)
        x = net.activation(f"relu{number}", net.linear(f"fc{number}", x, 4096))
    return net.classifier_loss(net.linear("fc8", x, 1000), classes=1000)


def alexnet_grouped() -> Graph:
    """AlexNet of 2012: two columns as groups, local response norm: 60,965,224 parameters."""
    net = NetworkBuilder("alexnet_grouped")
    x = net.image(3, 227, 227)
    for number, (width, kernel, stride, padding, groups) in enumerate(
        ((96, 11, 4, 0, 1), (256, 5, 1, 2, 2), (384, 3, 1, 1, 1), (384, 3, 1, 1, 2)), start=1
    ):
        x = net.conv(f"conv{number}", x, width, kernel, stride, padding, groups=groups, bias=True)
        x = net.activation(f"relu{number}", x)
        if number <= 2:
            x = net.add_node(f"norm{number}", ops.LocalResponseNorm(5), x)
            x = net.max_pool(f"pool{number}", x, 3, 2)
    x = net.activation("relu5", net.conv("conv5", x, 256, 3, 1, 1, groups=2, bias=True))
    x = net.flatten("flatten", net.max_pool("pool5", x, 3, 2))
    for number in (6, 7):
        x = net.activation(f"relu{number}", net.linear(f"fc{number}", x, 4096))
        x = net.dropout(f"dropout{number}", x, 0.5)
    return net.classifier_loss(net.linear("fc8", x, 1000), classes=1000)
