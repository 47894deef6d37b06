"""GPUNet (Wang et al. 2022): architecture search for low latency on NVIDIA GPUs."""

from dataclasses import dataclass

from paceline.workload.graph import Graph
from paceline.workload.zoo.inverted_residual import InvertedResidual
from paceline.workload.zoo.network_builder import NetworkBuilder

Stage = tuple[InvertedResidual, int, int, int]
"""Block, channels, stride of the first block, and number of blocks."""


@dataclass(frozen=True)
class GpuNetSize:
    """Side of the image, channels and number of the first plain convolutions, and the stages."""

    side: int
    width: int
    plain: int
    stages: tuple[Stage, ...]


def _fused(
    expansion: int, activation: str, kernel: int = 3, gated: bool = False
) -> InvertedResidual:
    return InvertedResidual(expansion, kernel, activation, gated, fused=True)


GPUNET = {
    "gpunet_0": GpuNetSize(
        320,
        32,
        2,
        (
            (_fused(5, "relu"), 32, 2, 2),
            (_fused(5, "relu"), 64, 2, 3),
            (InvertedResidual(5, 3, "silu"), 256, 2, 3),
            (InvertedResidual(5, 3, "relu", gated=True), 704, 2, 2),
        ),
    ),
    "gpunet_1": GpuNetSize(
        288,
        24,
        1,
        (
            (_fused(4, "silu"), 64, 2, 2),
            (_fused(4, "silu"), 96, 2, 2),
            (InvertedResidual(2, 3, "silu", gated=True), 160, 2, 1),
            (InvertedResidual(5, 3, "relu"), 288, 1, 4),
            (InvertedResidual(4, 3, "relu", gated=True), 448, 2, 4),
        ),
    ),
    "gpunet_2": GpuNetSize(
        384,
        32,
        3,
        (
            (_fused(6, "silu", kernel=5, gated=True), 32, 2, 1),
            (_fused(3, "silu"), 112, 2, 3),
            (InvertedResidual(6, 3, "silu"), 144, 2, 6),
            (InvertedResidual(3, 5, "relu"), 160, 1, 4),
            (InvertedResidual(3, 3, "silu", gated=True), 224, 2, 8),
            (InvertedResidual(2, 5, "relu"), 832, 1, 7),
        ),
    ),
}
"""The three networks without distillation; the paper reports 11.9, 12.7 and 25.8 M parameters."""


def gpunet(name: str) -> Graph:
    net, size = NetworkBuilder(name), GPUNET[name]
    x = net.image(3, size.side, size.side)
    x = net.conv_unit("stem", x, size.width, 3, 2, 1, activation="silu")
    for number in range(size.plain):
        x = net.conv_unit(f"plain{number}", x, size.width, 3, 1, 1)
    width = size.width
    for stage, (block, out, first_stride, blocks) in enumerate(size.stages):
        for number in range(blocks):
            with net.scope(f"stage{stage}.{number}"):
                x = block.write(net, x, width, out, 1 if number else first_stride)
            width = out
    x = net.global_avg_pool("pool", net.conv_unit("head", x, 1280, 1))
    scores = net.linear("fc", net.dropout("dropout", x, 0.2), 1000)
    return net.classifier_loss(scores, classes=1000)
