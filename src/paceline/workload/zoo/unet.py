"""U-Nets: as published (Ronneberger et al. 2015), for industrial defects, 3D, and nnU-Net.

The published network has valid convolutions and cropped shortcuts. 3D U-Net and nnU-Net have
strided convolutions; their loss is the cross entropy alone, because the Dice term that recipes add
is pointwise.
"""

from paceline.workload import ops
from paceline.workload.graph import Graph
from paceline.workload.zoo.network_builder import NetworkBuilder

_WIDTHS = (64, 128, 256, 512, 1024)


def unet(name: str = "unet") -> Graph:
    """U-Net from one channel of 572 x 572 to two classes of 388 x 388: 31,030,658 parameters."""
    net = NetworkBuilder(name)
    x, side = net.image(1, 572, 572), 572
    kept: list[tuple[str, int]] = []
    for level, width in enumerate(_WIDTHS):
        with net.scope(f"down{level}"):
            if level:
                x, side = net.max_pool("pool", x, 2, 2), side // 2
            x, side = _two_convolutions(net, x, width), side - 4
        kept.append((x, side))
    for level in (3, 2, 1, 0):
        with net.scope(f"up{level}"):
            x, side = net.conv_transposed("up", x, _WIDTHS[level], 2, 2), side * 2
            shortcut = _crop(net, *kept[level], side)
            x = _two_convolutions(net, net.concat("join", (shortcut, x)), _WIDTHS[level])
            side -= 4
    return net.segmentation_loss(net.conv("classes", x, 2, 1, bias=True), 2, side, side)


def _two_convolutions(
    net: NetworkBuilder, x: str, first: int, second: int | None = None, padding: int = 0
) -> str:
    for number, width in enumerate((first, second or first), start=1):
        x = net.conv(f"conv{number}", x, width, 3, 1, padding, bias=True)
        x = net.activation(f"relu{number}", x)
    return x


def _crop(net: NetworkBuilder, x: str, side: int, wanted: int) -> str:
    start = (side - wanted) // 2
    x = net.part("crop_rows", x, 1, start, start + wanted)
    return net.part("crop_columns", x, 2, start, start + wanted)


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


_DAGM_SIDE = 512
_DAGM_WIDTHS = (32, 32, 64, 128)
_DAGM_DEEPEST = 256


def unet_industrial() -> Graph:
    """NVIDIA's tinyUNet for surface defects in images of 512 x 512 (DAGM): 1,850,305 parameters.

    Convolutions are padded; upsampling is nearest-neighbour and a 2x2 convolution.
    """
    net = NetworkBuilder("unet_industrial")
    x = net.image(1, _DAGM_SIDE, _DAGM_SIDE)
    kept: list[str] = []
    for level, width in enumerate(_DAGM_WIDTHS):
        with net.scope(f"down{level}"):
            x = _two_convolutions(net, x, width, padding=1)
            kept.append(x)
            x = net.max_pool("pool", x, 2, 2)
    with net.scope("bottleneck"):
        x = _two_convolutions(net, x, _DAGM_DEEPEST, padding=1)
        x = _up(net, x, _DAGM_DEEPEST // 2, _DAGM_SIDE // 8)
    for level in (3, 2, 1):
        width = _DAGM_WIDTHS[level]
        with net.scope(f"up{level}"):
            joined = net.concat("join", (x, kept[level]))
            x = _two_convolutions(net, joined, width, width // 2, padding=1)
            x = _up(net, x, width // 2, _DAGM_SIDE >> (level - 1))
    with net.scope("up0"):
        x = _two_convolutions(net, net.concat("join", (x, kept[0])), _DAGM_WIDTHS[0], padding=1)
    x = net.conv("defect", x, 1, 1, bias=True)
    mask = net.image(1, _DAGM_SIDE, _DAGM_SIDE, name="mask")
    return net.build(net.elementwise_loss("loss", "binary_cross_entropy", x, mask))


def _up(net: NetworkBuilder, x: str, width: int, side: int) -> str:
    """Nearest-neighbour upsampling, then a 2x2 convolution with padding at the end."""
    x = net.conv("up", net.add_node("repeat", ops.Upsample(), x), width, 2, 1, 1, bias=True)
    x = net.part("columns", net.part("rows", x, 1, 1, side + 1), 2, 1, side + 1)
    return net.activation("relu_up", x)
