"""U-Net (Ronneberger et al. 2015) as published: valid convolutions, cropped shortcuts."""

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


def _two_convolutions(net: NetworkBuilder, x: str, width: int) -> str:
    for number in (1, 2):
        x = net.conv(f"conv{number}", x, width, 3, bias=True)
        x = net.activation(f"relu{number}", x)
    return x


def _crop(net: NetworkBuilder, x: str, side: int, wanted: int) -> str:
    start = (side - wanted) // 2
    x = net.part("crop_rows", x, 1, start, start + wanted)
    return net.part("crop_columns", x, 2, start, start + wanted)
