"""Residual networks: ResNet v1 and v1.5, ResNeXt, squeeze-and-excitation, those for CIFAR-10.

v1 (He et al. 2016) halves the image in the first 1x1 convolution of a bottleneck, v1.5 in its
3x3 convolution, which costs 6 % more arithmetic; parameters are the same. PyTorch, MXNet's v1b
and the MLPerf benchmark run v1.5.
"""

from dataclasses import dataclass

from paceline.workload import ops
from paceline.workload.graph import Graph
from paceline.workload.zoo.network_builder import NetworkBuilder

_BLOCKS = {
    18: (2, 2, 2, 2),
    34: (3, 4, 6, 3),
    50: (3, 4, 6, 3),
    101: (3, 4, 23, 3),
    152: (3, 8, 36, 3),
}
_EXPANSION = 4


@dataclass(frozen=True)
class Bottleneck:
    """The three-layer block: position of its stride, groups, squeeze-and-excitation."""

    stride_in_3x3: bool
    groups: int = 1
    group_width: int = 64
    squeeze: int | None = None

    def write(self, net: NetworkBuilder, x: str, width: int, stride: int, project: bool) -> str:
        """Add one block of ``width`` planes; ``project`` if the shortcut needs weights."""
        inner = width * self.group_width // 64 * self.groups
        first, second = (1, stride) if self.stride_in_3x3 else (stride, 1)
        y = net.activation("relu1", net.conv_norm(1, x, inner, 1, first))
        y = net.conv_norm(2, y, inner, 3, second, 1, groups=self.groups)
        y = net.conv_norm(3, net.activation("relu2", y), width * _EXPANSION, 1)
        if self.squeeze:
            y = gate(net, y, width * _EXPANSION, width * _EXPANSION // self.squeeze)
        return _join(net, x, y, width * _EXPANSION, stride, project)


def resnet(depth: int, version: str = "v1") -> Graph:
    """ResNet of 18, 34, 50, 101 or 152 layers, ``v1`` or ``v1.5``."""
    name = f"resnet{depth}" if version == "v1" else f"resnet{depth}_{version}"
    net = NetworkBuilder(name)
    x = resnet_stem(net)
    for stage, blocks in enumerate(_BLOCKS[depth]):
        if depth < 50:
            x = basic_stage(net, x, stage, blocks)
        else:
            block = Bottleneck(stride_in_3x3=version != "v1")
            x = bottleneck_stage(net, x, stage, blocks, block)
    return _classify(net, x)


def resnext101_32x4d() -> Graph:
    """ResNeXt-101 of 32 groups of width 4 (Xie et al. 2017): 44,177,704 parameters."""
    return _resnext101("resnext101_32x4d", squeeze=None)


def se_resnext101_32x4d() -> Graph:
    """ResNeXt-101 32x4d with squeeze-and-excitation (Hu et al. 2018): 48,955,416 parameters."""
    return _resnext101("se_resnext101_32x4d", squeeze=16)


def resnet_stem(net: NetworkBuilder, rows: int = 224, columns: int | None = None) -> str:
    """The first convolution and pool: a quarter of the image's side; the default is square."""
    image = net.image(3, rows, columns or rows)
    x = net.activation("relu", net.conv_norm(1, image, 64, 7, 2, 3))
    return net.max_pool("maxpool", x, 3, 2, 1)


def bottleneck_stage(
    net: NetworkBuilder, x: str, stage: int, blocks: int, block: Bottleneck, stride: int = 2
) -> str:
    """Stage number ``stage`` of bottlenecks; all but stage 0 begin with a stride."""
    for number in range(blocks):
        with net.scope(f"layer{stage + 1}.{number}"):
            first = number == 0
            x = block.write(net, x, 64 << stage, stride if first and stage else 1, project=first)
    return x


def _resnext101(name: str, squeeze: int | None) -> Graph:
    net = NetworkBuilder(name)
    x = resnet_stem(net)
    block = Bottleneck(stride_in_3x3=True, groups=32, group_width=4, squeeze=squeeze)
    for stage, blocks in enumerate(_BLOCKS[101]):
        x = bottleneck_stage(net, x, stage, blocks, block)
    return _classify(net, x)


def basic_stage(net: NetworkBuilder, x: str, stage: int, blocks: int, stride: int = 2) -> str:
    """Stage number ``stage`` of two-layer blocks; all but stage 0 begin with a stride."""
    width = 64 << stage
    for number in range(blocks):
        first = stage > 0 and number == 0
        own = stride if first else 1
        with net.scope(f"layer{stage + 1}.{number}"):
            y = net.activation("relu1", net.conv_norm(1, x, width, 3, own, 1))
            y = net.conv_norm(2, y, width, 3, 1, 1)
            x = _join(net, x, y, width, own, project=first)
    return x


def _join(net: NetworkBuilder, x: str, y: str, width: int, stride: int, project: bool) -> str:
    shortcut = x
    if project:
        with net.scope("shortcut"):
            shortcut = net.conv_norm("", x, width, 1, stride)
    return net.activation("relu", net.add("add", y, shortcut))


def gate(net: NetworkBuilder, x: str, width: int, inner: int, activation: str = "relu") -> str:
    """Squeeze-and-excitation (Hu et al. 2018)."""
    with net.scope("gate"):
        y = net.linear("fc1", net.global_avg_pool("pool", x), inner)
        y = net.linear("fc2", net.activation(activation, y, activation), width)
        return net.multiply("scale", x, net.activation("sigmoid", y, "sigmoid"))


def _classify(net: NetworkBuilder, x: str) -> Graph:
    scores = net.linear("fc", net.global_avg_pool("avgpool", x), 1000)
    return net.classifier_loss(scores, classes=1000)


_CIFAR_WIDTHS = (16, 32, 64)


def cifar_resnet(depth: int) -> Graph:
    """ResNet of ``depth`` = 6n + 2 layers on 32 x 32 images of ten classes (section 4.2).

    Shortcuts are option A: identity, with zero channels where the width doubles. ResNet-44 then has
    658,586 parameters, the 0.66 M of table 6.
    """
    blocks, rest = divmod(depth - 2, 6)
    if rest or blocks < 1:
        raise ValueError(f"a CIFAR residual network has 6n + 2 layers, not {depth}")
    net = NetworkBuilder(f"resnet{depth}")
    x = net.conv_norm(1, net.image(3, 32, 32), _CIFAR_WIDTHS[0], 3, 1, 1)
    x = net.activation("relu", x)
    for stage, width in enumerate(_CIFAR_WIDTHS, start=1):
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
