"""NVIDIA's tiny U-Net for surface defects (DAGM 2007): padded convolutions with biases.

Upsampling is nearest-neighbour and a 2x2 convolution instead of a transposed convolution.
"""

from paceline.workload import ops
from paceline.workload.graph import Graph
from paceline.workload.zoo.network_builder import NetworkBuilder

_SIDE = 512
_WIDTHS = (32, 32, 64, 128)
_DEEPEST = 256


def unet_industrial() -> Graph:
    """Build the recipe's variant tinyUNet for 512 x 512 images: 1,850,305 parameters."""
    net = NetworkBuilder("unet_industrial")
    x = net.image(1, _SIDE, _SIDE)
    kept: list[str] = []
    for level, width in enumerate(_WIDTHS):
        with net.scope(f"down{level}"):
            x = _two_convolutions(net, x, width, width)
            kept.append(x)
            x = net.max_pool("pool", x, 2, 2)
    with net.scope("bottleneck"):
        x = _two_convolutions(net, x, _DEEPEST, _DEEPEST)
        x = _up(net, x, _DEEPEST // 2, _SIDE // 8)
    for level in (3, 2, 1):
        width = _WIDTHS[level]
        with net.scope(f"up{level}"):
            x = _two_convolutions(net, net.concat("join", (x, kept[level])), width, width // 2)
            x = _up(net, x, width // 2, _SIDE >> (level - 1))
    with net.scope("up0"):
        x = _two_convolutions(net, net.concat("join", (x, kept[0])), _WIDTHS[0], _WIDTHS[0])
    x = net.conv("defect", x, 1, 1, bias=True)
    mask = net.image(1, _SIDE, _SIDE, name="mask")
    return net.build(net.elementwise_loss("loss", "binary_cross_entropy", x, mask))


def _two_convolutions(net: NetworkBuilder, x: str, first: int, second: int) -> str:
    for number, width in enumerate((first, second), start=1):
        x = net.conv(f"conv{number}", x, width, 3, 1, 1, bias=True)
        x = net.activation(f"relu{number}", x)
    return x


def _up(net: NetworkBuilder, x: str, width: int, side: int) -> str:
    """Nearest-neighbour upsampling, then a 2x2 convolution with padding at the end."""
    x = net.conv("up", net.add_node("repeat", ops.Upsample(), x), width, 2, 1, 1, bias=True)
    x = net.part("columns", net.part("rows", x, 1, 1, side + 1), 2, 1, side + 1)
    return net.activation("relu_up", x)
