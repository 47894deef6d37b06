"""SSD300 with ResNet backbones on COCO, as NVIDIA (ResNet-50) and MLPerf (ResNet-34) train it.

Hard-negative mining is left out of the loss: it sorts 8,732 values per image, which is negligible.
"""

from paceline.workload.graph import Graph
from paceline.workload.zoo.network_builder import NetworkBuilder
from paceline.workload.zoo.resnet import Bottleneck, basic_stage, bottleneck_stage, resnet_stem

# COCO's 80 classes and the background.
_CLASSES = 81
# Maps of 38, 19, 10, 5, 3 and 1 squared with the boxes below (Liu et al. 2016).
_ALL_BOXES = 8732
# Default boxes per position of each feature map.
_BOXES = (4, 6, 6, 6, 4, 4)
# Extra blocks: inner width, output width, whether the block halves the map.
_BLOCKS = (
    (256, 512, True),
    (256, 512, True),
    (128, 256, True),
    (128, 256, False),
    (128, 256, False),
)


def ssd300_resnet50() -> Graph:
    """SSD on 300 x 300 images: 8,732 boxes from six feature maps."""
    net = NetworkBuilder("ssd300_resnet50")
    x = resnet_stem(net, 300)
    for stage, blocks in enumerate((3, 4, 6)):
        block = Bottleneck(stride_in_3x3=True)
        x = bottleneck_stage(net, x, stage, blocks, block, _stride(stage))
    return _detect(net, x, normalised=True)


def ssd300_resnet34() -> Graph:
    """SSD with ResNet-34, without norms after the backbone: 19,972,534 parameters."""
    net = NetworkBuilder("ssd300_resnet34")
    x = resnet_stem(net, 300)
    for stage, blocks in enumerate((3, 4, 6)):
        x = basic_stage(net, x, stage, blocks, _stride(stage))
    return _detect(net, x, normalised=False)


def _stride(stage: int) -> int:
    """The third stage keeps 38 x 38 positions instead of halving them."""
    return 1 if stage == 2 else 2


def _detect(net: NetworkBuilder, x: str, normalised: bool) -> Graph:
    maps = [x]
    for number, (inner, out, halve) in enumerate(_BLOCKS):
        window = (2, 1) if halve else (1, 0)
        with net.scope(f"extra{number}"):
            if normalised:
                x = net.conv_unit("main", net.conv_unit("reduce", x, inner, 1), out, 3, *window)
            else:
                x = net.activation("relu1", net.conv("reduce", x, inner, 1, bias=True))
                x = net.activation("relu2", net.conv("main", x, out, 3, *window, bias=True))
        maps.append(x)
    regression = _head(net, "box_regression", maps, 4)
    scores = _head(net, "scores", maps, _CLASSES)
    targets = net.image(_ALL_BOXES, 4, name="target_boxes")
    label = net.integers("label", _CLASSES, _ALL_BOXES)
    return net.sum_of_losses(
        net.elementwise_loss("box_loss", "smooth_l1", regression, targets),
        net.cross_entropy("score_loss", scores, label),
    )


def _head(net: NetworkBuilder, name: str, maps: list[str], values: int) -> str:
    parts: list[str] = []
    for number, (x, boxes) in enumerate(zip(maps, _BOXES, strict=True)):
        with net.scope(f"{name}{number}"):
            y = net.conv("conv", x, boxes * values, 3, 1, 1, bias=True)
            parts.append(net.reshape("boxes", net.transpose("last", y, 1, 2, 0), -1, values))
    return net.concat(name, parts)
