"""The inverted residual block and its fused form: MobileNet v2, EfficientNet, GPUNet."""

from dataclasses import dataclass

from paceline.workload.zoo.network_builder import NetworkBuilder
from paceline.workload.zoo.resnet import gate


@dataclass(frozen=True, slots=True)
class InvertedResidual:
    """1x1 expansion, depthwise convolution, 1x1 projection; ``fused`` merges the first two.

    ``gated`` blocks have squeeze-and-excitation of a quarter of the block's input channels.
    """

    expansion: int
    kernel: int = 3
    activation: str = "relu"
    gated: bool = False
    fused: bool = False

    def write(self, net: NetworkBuilder, x: str, width: int, out: int, stride: int) -> str:
        """Add one block from ``width`` to ``out`` channels, with a shortcut if shapes agree."""
        inner, window = width * self.expansion, (self.kernel, stride, self.kernel // 2)
        if self.fused:
            y = net.conv_unit("expand", x, inner, *window, activation=self.activation)
        else:
            y = x
            if self.expansion > 1:
                y = net.conv_unit("expand", y, inner, 1, activation=self.activation)
            y = net.conv_unit(
                "depthwise", y, inner, *window, groups=inner, activation=self.activation
            )
        if self.gated:
            y = gate(net, y, inner, width // 4, self.activation)
        with net.scope("project"):
            y = net.conv_norm("", y, out, 1)
        return net.add("add", y, x) if stride == 1 and width == out else y
