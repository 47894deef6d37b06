"""RetinaNet (Lin et al. 2017) with ResNeXt-50 on Open Images, the MLPerf benchmark of detection.

Matching anchors to targets is left out; the box loss reads all anchors.
"""

from paceline.workload import ops
from paceline.workload.graph import Graph
from paceline.workload.zoo.pyramid import WIDTH, backbone, detector, pyramid, shared_head
from paceline.workload.zoo.resnet import Bottleneck

_SIDE = 800
# The classes of Open Images that MLPerf trains on.
_CLASSES = 264
# Three scales times three aspect ratios (Lin et al. 2017).
_ANCHORS_PER_POSITION = 9
_ANCHORS = _ANCHORS_PER_POSITION * sum(side**2 for side in (100, 50, 25, 13, 7))


def retinanet_resnext50() -> Graph:
    """Images of 800 x 800, 120,087 anchors of five levels."""
    net = detector("retinanet_resnext50")
    block = Bottleneck(stride_in_3x3=True, groups=32, group_width=4)
    levels = pyramid(net, backbone(net, _SIDE, _SIDE, block)[1:])
    sixth = net.conv("pyramid.sixth", levels[-1], WIDTH, 3, 2, 1, bias=True)
    relu = net.activation("pyramid.relu", sixth)
    levels += [sixth, net.conv("pyramid.seventh", relu, WIDTH, 3, 2, 1, bias=True)]
    (scores,) = shared_head(net, "classes", levels, 4, 3, scores=_ANCHORS_PER_POSITION * _CLASSES)
    (regression,) = shared_head(
        net, "box_regression", levels, 4, 3, corners=_ANCHORS_PER_POSITION * 4
    )
    scores = net.reshape("classes.each", scores, _ANCHORS, _CLASSES)
    regression = net.reshape("box_regression.each", regression, _ANCHORS, 4)
    label = net.integers("label", _CLASSES, _ANCHORS)
    targets = net.image(_ANCHORS, 4, name="target_boxes")
    return net.sum_of_losses(
        net.add_node("class_loss", ops.FocalLoss(), scores, label),
        net.elementwise_loss("box_loss", "smooth_l1", regression, targets),
    )
