"""Jasper 10x5 DR (Li et al. 2019): speech to characters by convolutions in dense blocks."""

from paceline.workload import ops
from paceline.workload.graph import Graph
from paceline.workload.zoo.builder import NetworkBuilder

_MEL_BANDS = 64
_CHARACTERS = 29
_LONGEST_TEXT = 200
# Kernel, width and dropout of the five pairs of blocks.
_PAIRS = ((11, 256, 0.2), (13, 384, 0.2), (17, 512, 0.2), (21, 640, 0.3), (25, 768, 0.3))


def jasper() -> Graph:
    """Ten blocks of five convolutions, each reading all blocks before it: 332,632,349.

    A sample is 16.7 s of speech, 1,670 frames of 64 bands; 200 characters stand for its text.
    """
    net = NetworkBuilder("jasper")
    x = net.sound(_MEL_BANDS, "sequence")
    x = _unit(net, "first", x, 256, 11, 0.2, stride=2)
    earlier = [x]
    for number in range(10):
        kernel, width, dropout = _PAIRS[number // 2]
        with net.scope(f"blocks.{number}"):
            earlier.append(_block(net, earlier, width, kernel, dropout))
    x = _unit(net, "second", earlier[-1], 896, 29, 0.4, dilation=2)
    x = _unit(net, "third", x, 1024, 1, 0.4)
    x = net.conv("characters", x, _CHARACTERS, 1, bias=True, dimensions=1)
    text = net.integers("text", _CHARACTERS, _LONGEST_TEXT)
    loss = net.add_node("loss", ops.CtcLoss(), net.transpose("frames", x, 1, 0), text)
    return net.build(loss, 1670)


def _block(net: NetworkBuilder, earlier: list[str], width: int, kernel: int, dropout: float) -> str:
    x = earlier[-1]
    for number in range(4):
        x = _unit(net, f"{number}", x, width, kernel, dropout)
    parts = [_normalised(net, "4", x, width, kernel)]
    for number, read in enumerate(earlier):
        parts.append(_normalised(net, f"shortcut{number}", read, width, 1))
    x = net.activation("relu", net.add("add", *parts))
    return net.dropout("dropout", x, dropout)


def _unit(
    net: NetworkBuilder,
    name: str,
    x: str,
    width: int,
    kernel: int,
    dropout: float,
    stride: int = 1,
    dilation: int = 1,
) -> str:
    x = _normalised(net, name, x, width, kernel, stride, dilation)
    return net.dropout(f"{name}.dropout", net.activation(f"{name}.relu", x), dropout)


def _normalised(
    net: NetworkBuilder,
    name: str,
    x: str,
    width: int,
    kernel: int,
    stride: int = 1,
    dilation: int = 1,
) -> str:
    padding = dilation * (kernel - 1) // 2
    with net.scope(name):
        x = net.conv("conv", x, width, (kernel,), stride, padding, dilation=dilation)
        return net.batch_norm("norm", x)
