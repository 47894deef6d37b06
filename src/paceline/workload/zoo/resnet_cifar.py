"""Residual networks for CIFAR-10 (He et al. 2016, section 4.2): 6n + 2 layers.

Shortcuts are the paper's option A: identity, with zero channels where the width doubles, so
they have no weights. ResNet-44 then has 658,586 parameters, the 0.66 M of the paper's table 6.
"""

from paceline.workload import ops
from paceline.workload.graph import Graph
from paceline.workload.zoo.network_builder import NetworkBuilder

_WIDTHS = (16, 32, 64)


def cifar_resnet(depth: int) -> Graph:
    """ResNet of ``depth`` = 6n + 2 layers on 32 x 32 images of ten classes."""
    blocks, rest = divmod(depth - 2, 6)
    if rest or blocks < 1:
        raise ValueError(f"a CIFAR residual network has 6n + 2 layers, not {depth}")
    net = NetworkBuilder(f"resnet{depth}")
    x = net.conv_norm(1, net.image(3, 32, 32), _WIDTHS[0], 3, 1, 1)
    x = net.activation("relu", x)
    for stage, width in enumerate(_WIDTHS, start=1):
        for block in range(blocks):
            with net.scope(f"layer{stage}.{block}"):
                x = _basic_block(net, x, width, stride=2 if stage > 1 and block == 0 else 1)
    x = net.global_avg_pool("pool", x)
    return net.classifier_loss(net.linear("fc", x, 10), classes=10)


def _basic_block(net: NetworkBuilder, x: str, width: int, stride: int) -> str:
    shortcut = x
    if stride > 1:
        shortcut = net.add_node("shortcut", ops.PadShortcut(width, stride), x)
    y = net.activation("relu1", net.conv_norm(1, x, width, 3, stride, 1))
    y = net.conv_norm(2, y, width, 3, 1, 1)
    return net.activation("relu2", net.add("add", y, shortcut))
