"""Feature pyramid networks (Lin et al. 2017) on ResNets, with heads shared by all levels."""

from paceline.workload import ops
from paceline.workload.zoo.network_builder import NetworkBuilder
from paceline.workload.zoo.resnet import Bottleneck, bottleneck_stage, resnet_stem

WIDTH = 256
"""Channels of every level of the pyramid."""


def detector(name: str) -> NetworkBuilder:
    """A builder with frozen batch norm: detectors train with too few images per device for its
    statistics.
    """
    return NetworkBuilder(name, image_norm=ops.FrozenBatchNorm())


def backbone(net: NetworkBuilder, rows: int, columns: int, block: Bottleneck) -> list[str]:
    """The four stages of a ResNet-50 with the given block; stem and first stage are frozen."""
    with net.scope("backbone"):
        with net.frozen():
            x = bottleneck_stage(net, resnet_stem(net, rows, columns), 0, 3, block)
        maps = [x]
        for stage, blocks in ((1, 4), (2, 6), (3, 3)):
            maps.append(bottleneck_stage(net, maps[-1], stage, blocks, block))
    return maps


def pyramid(net: NetworkBuilder, maps: list[str]) -> list[str]:
    """Levels of equal width, finest first; upsampled coarse levels are added to finer ones."""
    levels: list[str] = []
    above: str | None = None
    with net.scope("pyramid"):
        for number in reversed(range(len(maps))):
            x = net.conv(f"inner{number}", maps[number], WIDTH, 1, bias=True)
            if above is not None:
                x = net.add(f"add{number}", x, net.add_node(f"up{number}", ops.Upsample(), above))
            above = x
            levels.insert(0, net.conv(f"layer{number}", x, WIDTH, 3, 1, 1, bias=True))
    return levels


def shared_head(
    net: NetworkBuilder, name: str, levels: list[str], hidden: int, kernel: int, **outputs: int
) -> list[str]:
    """``hidden`` 3x3 convolutions, then one of ``kernel`` per output, shared by all levels.

    ``outputs`` are values per position; a result is positions x values of all levels.
    """
    parts: dict[str, list[str]] = {output: [] for output in outputs}
    for level, x in enumerate(levels):

        def conv(layer: str, y: str, width: int, size: int = 3, level: int = level) -> str:
            shares = f"{name}.0.{layer}" if level else None
            return net.conv(layer, y, width, size, 1, size // 2, bias=True, shares=shares)

        with net.scope(f"{name}.{level}"):
            for number in range(hidden):
                x = net.activation(f"relu{number}", conv(f"conv{number}", x, WIDTH))
            for output, values in outputs.items():
                y = net.transpose(f"{output}_last", conv(output, x, values, kernel), 1, 2, 0)
                parts[output].append(net.reshape(f"{output}_rows", y, -1, values))
    return [net.concat(f"{name}.{output}", rows) for output, rows in parts.items()]
