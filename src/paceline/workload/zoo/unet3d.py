"""U-Nets with strided convolutions: 3D U-Net, and nnU-Net in 2D and 3D.

The loss is the cross entropy alone; the Dice term that recipes add is pointwise.
"""

from paceline.workload import ops
from paceline.workload.graph import Graph
from paceline.workload.zoo.network_builder import NetworkBuilder

_KITS_WIDTHS = (32, 64, 128, 256, 320, 320)


def unet3d() -> Graph:
    """MLPerf's 3D U-Net on KiTS19 (Isensee et al. 2018), crops of 128 cubed in three classes."""
    return _unet("unet3d", 1, 3, (128,) * 3, _KITS_WIDTHS, "relu")


def nnunet_3d() -> Graph:
    """NVIDIA's nnU-Net on the brain tumours of the Decathlon: four modalities, four classes."""
    return _unet("nnunet_3d", 4, 4, (128,) * 3, _KITS_WIDTHS, "leaky_relu")


def nnunet_2d() -> Graph:
    """NVIDIA's nnU-Net in 2D, on slices of 192 x 160."""
    return _unet("nnunet_2d", 4, 4, (192, 160), (32, 64, 128, 256, 512, 512), "leaky_relu")


def _unet(
    name: str,
    channels: int,
    classes: int,
    sides: tuple[int, ...],
    widths: tuple[int, ...],
    activation: str,
) -> Graph:
    """Two convolutions per level on both sides; transposed convolutions double the resolution."""
    net, rank = NetworkBuilder(name), len(sides)
    x = net.image(channels, *sides)
    levels: list[str] = []
    for level, width in enumerate(widths):
        with net.scope(f"down{level}"):
            x = _convolution(net, "1", x, width, rank, activation, stride=2 if level else 1)
            x = _convolution(net, "2", x, width, rank, activation)
        levels.append(x)
    for level in reversed(range(len(widths) - 1)):
        with net.scope(f"up{level}"):
            x = net.conv_transposed("up", x, widths[level], 2, 2, dimensions=rank)
            x = net.concat("join", (x, levels[level]))
            x = _convolution(net, "1", x, widths[level], rank, activation)
            x = _convolution(net, "2", x, widths[level], rank, activation)
    maps = net.conv("classes", x, classes, 1, bias=True, dimensions=rank)
    return net.segmentation_loss(maps, classes, *sides)


def _convolution(
    net: NetworkBuilder,
    number: str,
    x: str,
    width: int,
    rank: int,
    activation: str,
    stride: int = 1,
) -> str:
    x = net.conv(f"conv{number}", x, width, 3, stride, 1, dimensions=rank)
    x = net.add_node(f"norm{number}", ops.GroupNorm(width), x)
    return net.activation(f"{activation}{number}", x, activation)
