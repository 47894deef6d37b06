"""Convolutional speech recognition: Jasper and QuartzNet.

A sample is 16.7 s of speech: 1,670 frames of 64 bands, with a transcript of 200 characters.
"""

from paceline.workload import ops
from paceline.workload.graph import Graph
from paceline.workload.zoo.network_builder import NetworkBuilder

_MEL_BANDS = 64
_FRAMES = 1670
# Letters, space, apostrophe and the blank of CTC.
_CHARACTERS = 29
_LONGEST_TEXT = 200
# Kernel, width and dropout of Jasper's five pairs of blocks.
_PAIRS = ((11, 256, 0.2), (13, 384, 0.2), (17, 512, 0.2), (21, 640, 0.3), (25, 768, 0.3))
# Kernel and width of QuartzNet's five groups of three blocks.
_GROUPS = ((33, 256), (39, 256), (51, 512), (63, 512), (75, 512))


def jasper() -> Graph:
    """Jasper 10x5 DR (Li et al. 2019), each block reading all before it: 332,632,349 parameters."""
    net = _Builder("jasper")
    x = net.unit("first", net.sound(_MEL_BANDS, "sequence"), 256, 11, 0.2, stride=2)
    earlier = [x]
    for number in range(10):
        kernel, width, dropout = _PAIRS[number // 2]
        with net.scope(f"blocks.{number}"):
            earlier.append(net.dense_block(earlier, width, kernel, dropout))
    x = net.unit("second", earlier[-1], 896, 29, 0.4, dilation=2)
    return net.text_loss(net.unit("third", x, 1024, 1, 0.4))


def quartznet() -> Graph:
    """QuartzNet 15x5 (Kriman et al. 2020): 18,894,656 and 29,725 of the decoder."""
    net = _Builder("quartznet")
    x = net.separable("first", net.sound(_MEL_BANDS, "sequence"), _MEL_BANDS, 256, 33, stride=2)
    x, width = net.activation("first.relu", x), 256
    for group, (kernel, out) in enumerate(_GROUPS):
        for repeat in range(3):
            with net.scope(f"blocks.{3 * group + repeat}"):
                x = net.separable_block(x, width, out, kernel)
            width = out
    x = net.activation("second.relu", net.separable("second", x, 512, 512, 87, dilation=2))
    return net.text_loss(net.activation("third.relu", net.normalised("third", x, 1024, 1)))


class _Builder(NetworkBuilder):
    def normalised(
        self, name: str, x: str, width: int, kernel: int, stride: int = 1, dilation: int = 1
    ) -> str:
        padding = dilation * (kernel - 1) // 2
        with self.scope(name):
            x = self.conv("conv", x, width, (kernel,), stride, padding, dilation=dilation)
            return self.batch_norm("norm", x)

    def unit(
        self, name: str, x: str, width: int, kernel: int, dropout: float, **window: int
    ) -> str:
        x = self.activation(f"{name}.relu", self.normalised(name, x, width, kernel, **window))
        return self.dropout(f"{name}.dropout", x, dropout)

    def dense_block(self, earlier: list[str], width: int, kernel: int, dropout: float) -> str:
        x = earlier[-1]
        for number in range(4):
            x = self.unit(f"{number}", x, width, kernel, dropout)
        parts = [self.normalised("4", x, width, kernel)]
        for number, read in enumerate(earlier):
            parts.append(self.normalised(f"shortcut{number}", read, width, 1))
        return self.dropout("dropout", self.activation("relu", self.add("add", *parts)), dropout)

    def separable(
        self, name: str, x: str, width: int, out: int, size: int, stride: int = 1, dilation: int = 1
    ) -> str:
        """Depthwise separable convolution over time and batch norm."""
        window = ((size,), stride, dilation * (size - 1) // 2)
        with self.scope(name):
            y = self.conv("time", x, width, *window, dilation=dilation, groups=width)
            return self.batch_norm("norm", self.conv("bands", y, out, 1, dimensions=1))

    def separable_block(self, x: str, width: int, out: int, kernel: int) -> str:
        y = self.separable("0", x, width, out, kernel)
        for number in range(1, 5):
            y = self.activation(f"{number - 1}.relu", y)
            y = self.separable(f"{number}", y, out, out, kernel)
        return self.activation("relu", self.add("add", y, self.normalised("shortcut", x, out, 1)))

    def text_loss(self, frames: str) -> Graph:
        x = self.conv("characters", frames, _CHARACTERS, 1, bias=True, dimensions=1)
        text = self.integers("text", _CHARACTERS, _LONGEST_TEXT)
        loss = self.add_node("loss", ops.CtcLoss(), self.transpose("frames", x, 1, 0), text)
        return self.build(loss, _FRAMES)
