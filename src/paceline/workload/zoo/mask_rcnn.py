"""Mask R-CNN (He et al. 2017) with a ResNet-50 pyramid on COCO, as maskrcnn-benchmark trains it.

The recipes of NVIDIA and MLPerf are based on that program. The selection of proposals and their
matching to targets are left out: boxes are an input. Losses read 256 sampled anchors, 512 boxes and
128 of those with masks per image; the class of every box is assumed to be the first.
"""

from paceline.workload import ops
from paceline.workload.graph import Graph
from paceline.workload.zoo.network_builder import NetworkBuilder
from paceline.workload.zoo.pyramid import WIDTH, backbone, detector, pyramid, shared_head
from paceline.workload.zoo.resnet import Bottleneck

_ROWS, _COLUMNS = 800, 1344
# COCO's 80 classes and the background.
_CLASSES = 81
_SAMPLED_ANCHORS, _BOXES, _MASKS = 256, 512, 128
_MASK_SIDE = 28


def mask_rcnn_r50_fpn() -> Graph:
    """Images of 800 x 1344: 44,347,573 weights, 222,400 of them frozen."""
    net = detector("mask_rcnn_r50_fpn")
    levels = pyramid(net, backbone(net, _ROWS, _COLUMNS, Bottleneck(stride_in_3x3=False)))
    return net.sum_of_losses(
        *_proposal_losses(net, levels), *_box_losses(net, levels), _mask_loss(net, levels)
    )


def _proposal_losses(net: NetworkBuilder, levels: list[str]) -> list[str]:
    """Three anchors per position of five levels; the fifth subsamples the fourth."""
    extended = [*levels, net.max_pool("pyramid.pool", levels[-1], 1, 2)]
    objectness, corners = shared_head(net, "proposals", extended, 1, 1, objects=3, corners=12)
    losses = []
    for name, function, rows, values in (
        ("object", "binary_cross_entropy", objectness, 1),
        ("anchor", "smooth_l1", corners, 4),
    ):
        rows = net.reshape(f"proposals.{name}_each", rows, -1, values)
        sampled = net.part(f"proposals.{name}_sampled", rows, 0, 0, _SAMPLED_ANCHORS)
        wanted = net.image(_SAMPLED_ANCHORS, values, name=name)
        losses.append(net.elementwise_loss(f"{name}_loss", function, sampled, wanted))
    return losses


def _box_losses(net: NetworkBuilder, levels: list[str]) -> list[str]:
    boxes = net.image(_BOXES, 4, name="boxes")
    with net.scope("boxes_head"):
        x = net.add_node("align", ops.RoiAlign((7, 7)), boxes, *levels)
        x = net.flatten("flatten", net.transpose("boxes_first", x, 1, 0, 2, 3), start_axis=1)
        x = net.activation("relu6", net.linear("fc6", x, 1024))
        x = net.activation("relu7", net.linear("fc7", x, 1024))
        scores = net.linear("scores", x, _CLASSES)
        corners = net.part("own_class", net.linear("corners", x, 4 * _CLASSES), 1, 0, 4)
    return [
        net.cross_entropy("class_loss", scores, net.integers("class", _CLASSES, _BOXES)),
        net.elementwise_loss("box_loss", "smooth_l1", corners, net.image(_BOXES, 4, name="box")),
    ]


def _mask_loss(net: NetworkBuilder, levels: list[str]) -> str:
    """Convolutions per box: boxes are a dimension with kernel size 1."""
    boxes = net.image(_MASKS, 4, name="mask_boxes")
    with net.scope("mask_head"):
        x = net.add_node("align", ops.RoiAlign((14, 14)), boxes, *levels)
        for number in range(4):
            x = net.conv(f"conv{number}", x, WIDTH, (1, 3, 3), 1, (0, 1, 1), bias=True)
            x = net.activation(f"relu{number}", x)
        x = net.conv_transposed("up", x, WIDTH, (1, 2, 2), (1, 2, 2), dimensions=3)
        x = net.conv("masks", net.activation("relu_up", x), _CLASSES, (1, 1, 1), bias=True)
        x = net.part("own_class", x, 0, 0, 1)
    mask = net.image(1, _MASKS, _MASK_SIDE, _MASK_SIDE, name="mask")
    return net.elementwise_loss("mask_loss", "binary_cross_entropy", x, mask)
