"""QuartzNet 15x5 (Kriman et al. 2020): speech to characters by separable convolutions."""

from paceline.workload import ops
from paceline.workload.graph import Graph
from paceline.workload.zoo.builder import NetworkBuilder

_MEL_BANDS = 64
_CHARACTERS = 29
_LONGEST_TEXT = 200
# Kernel and width of the five groups of three blocks.
_GROUPS = ((33, 256), (39, 256), (51, 512), (63, 512), (75, 512))


def quartznet() -> Graph:
    """QuartzNet of 15 blocks of 5 convolutions: 18,894,656 and 29,725 of the decoder.

    A sample is 16.7 s of speech, 1,670 frames of 64 bands; 200 characters stand for its text.
    """
    net = NetworkBuilder("quartznet")
    x = net.sound(_MEL_BANDS, "sequence")
    x = net.activation("first.relu", _separable(net, "first", x, _MEL_BANDS, 256, 33, stride=2))
    width = 256
    for group, (kernel, out) in enumerate(_GROUPS):
        for repeat in range(3):
            with net.scope(f"blocks.{3 * group + repeat}"):
                x = _block(net, x, width, out, kernel)
            width = out
    x = net.activation("second.relu", _separable(net, "second", x, 512, 512, 87, dilation=2))
    with net.scope("third"):
        x = net.conv("conv", x, 1024, 1, dimensions=1)
        x = net.activation("relu", net.batch_norm("norm", x))
    x = net.conv("characters", x, _CHARACTERS, 1, bias=True, dimensions=1)
    text = net.integers("text", _CHARACTERS, _LONGEST_TEXT)
    loss = net.add_node("loss", ops.CtcLoss(), net.transpose("frames", x, 1, 0), text)
    return net.build(loss, 1670)


def _block(net: NetworkBuilder, x: str, width: int, out: int, kernel: int) -> str:
    y = x
    for number in range(5):
        y = _separable(net, f"{number}", y, out if number else width, out, kernel)
        if number < 4:
            y = net.activation(f"{number}.relu", y)
    with net.scope("shortcut"):
        shortcut = net.batch_norm("norm", net.conv("conv", x, out, 1, dimensions=1))
    return net.activation("relu", net.add("add", y, shortcut))


def _separable(
    net: NetworkBuilder,
    name: str,
    x: str,
    width: int,
    out: int,
    kernel: int,
    stride: int = 1,
    dilation: int = 1,
) -> str:
    """Each band by itself over time, then all bands of each frame, then normalised."""
    padding = dilation * (kernel - 1) // 2
    with net.scope(name):
        y = net.conv("time", x, width, (kernel,), stride, padding, dilation=dilation, groups=width)
        return net.batch_norm("norm", net.conv("bands", y, out, 1, dimensions=1))
