"""SSD300 with a ResNet-50 backbone, as NVIDIA and MLPerf train it on COCO.

Hard-negative mining is left out of the loss: it sorts 8,732 numbers per image.
"""

from paceline.workload import ops
from paceline.workload.graph import Graph
from paceline.workload.zoo.builder import NetworkBuilder
from paceline.workload.zoo.resnet import Bottleneck, bottleneck_stage, resnet_stem

_CLASSES = 81
# Default boxes per position of each feature map.
_BOXES = (4, 6, 6, 6, 4, 4)
# Further blocks: width between, width out, whether it halves the map.
_BLOCKS = ((256, 512, True), (256, 512, True), (128, 256, True), (128, 256, False))


def ssd300_resnet50() -> Graph:
    """SSD on 300 x 300 images: 8,732 boxes from six feature maps."""
    net = NetworkBuilder("ssd300_resnet50")
    x = resnet_stem(net, 300)
    for stage, blocks in enumerate((3, 4, 6)):
        # The third stage keeps 38 x 38 positions instead of halving them.
        stride = 1 if stage == 2 else 2
        x = bottleneck_stage(net, x, stage, blocks, Bottleneck(stride_in_3x3=True), stride)
    maps = [x]
    for number, (inner, out, halve) in enumerate((*_BLOCKS, (128, 256, False))):
        with net.scope(f"extra{number}"):
            x = net.conv_unit("reduce", x, inner, 1)
            x = net.conv_unit("main", x, out, 3, *((2, 1) if halve else (1, 0)))
        maps.append(x)
    places = _head(net, "places", maps, 4)
    scores = _head(net, "scores", maps, _CLASSES)
    boxes = 8732
    place = net.image(boxes, 4, name="place")
    label = net.integers("label", _CLASSES, boxes)
    smooth = net.add_node("place_loss", ops.ElementwiseLoss("smooth_l1"), places, place)
    entropy = net.cross_entropy("score_loss", scores, label)
    return net.build(net.add_node("loss", ops.WeightedSum((1.0, 1.0)), smooth, entropy))


def _head(net: NetworkBuilder, name: str, maps: list[str], values: int) -> str:
    """``values`` numbers for every box of every map: boxes x values."""
    parts: list[str] = []
    for number, (x, boxes) in enumerate(zip(maps, _BOXES, strict=True)):
        with net.scope(f"{name}{number}"):
            y = net.conv("conv", x, boxes * values, 3, 1, 1, bias=True)
            y = net.transpose("channels_last", y, 1, 2, 0)
            parts.append(net.add_node("boxes", ops.Reshape((-1, values)), y))
    return net.concat(name, parts)
