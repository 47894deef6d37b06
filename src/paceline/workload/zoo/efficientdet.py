"""EfficientDet-D0 (Tan et al. 2020): EfficientNet-B0 with three bidirectional pyramids."""

from paceline.workload import ops
from paceline.workload.graph import Graph
from paceline.workload.zoo.inverted_residual import InvertedResidual
from paceline.workload.zoo.network_builder import NetworkBuilder

_SIDE = 512
_WIDTH = 64
_CELLS = 3
_REPEATS = 3
_CLASSES, _ANCHORS_PER_POSITION = 90, 9
_ANCHORS = _ANCHORS_PER_POSITION * sum((_SIDE >> level) ** 2 for level in range(3, 8))
# Expansion, kernel, channels, stride and number of blocks of EfficientNet-B0; every level of
# the pyramid starts from the last stage of its size.
_STAGES = (
    (1, 3, 16, 1, 1),
    (6, 3, 24, 2, 2),
    (6, 5, 40, 2, 2),
    (6, 3, 80, 2, 3),
    (6, 5, 112, 1, 3),
    (6, 5, 192, 2, 4),
    (6, 3, 320, 1, 1),
)
_TAKEN = (2, 4, 6)


def efficientdet_d0() -> Graph:
    """Images of 512 x 512 in 90 classes."""
    net = NetworkBuilder("efficientdet_d0")
    levels = _backbone(net)
    with net.scope("pyramid.sixth"):
        coarse = net.conv_norm("", levels[-1], _WIDTH, 1)
        levels.append(net.max_pool("pool", coarse, 3, 2, 1))
    levels.append(net.max_pool("pyramid.seventh", levels[-1], 3, 2, 1))
    for cell in range(_CELLS):
        with net.scope(f"pyramid.{cell}"):
            levels = _bidirectional(net, levels, narrow=cell > 0)
    scores = _head(net, "classes", levels, _CLASSES)
    regression = _head(net, "box_regression", levels, 4)
    label = net.integers("label", _CLASSES, _ANCHORS)
    targets = net.image(_ANCHORS, 4, name="target_boxes")
    return net.sum_of_losses(
        net.add_node("class_loss", ops.FocalLoss(), scores, label),
        net.elementwise_loss("box_loss", "smooth_l1", regression, targets),
    )


def _backbone(net: NetworkBuilder) -> list[str]:
    x = net.conv_unit("stem", net.image(3, _SIDE, _SIDE), 32, 3, 2, 1, activation="silu")
    width, levels = 32, []
    for stage, (expansion, kernel, out, stride, blocks) in enumerate(_STAGES):
        block = InvertedResidual(expansion, kernel, "silu", gated=True)
        for number in range(blocks):
            with net.scope(f"stage{stage}.{number}"):
                x = block.write(net, x, width, out, 1 if number else stride)
            width = out
        if stage in _TAKEN:
            levels.append(x)
    return levels


def _bidirectional(net: NetworkBuilder, levels: list[str], narrow: bool) -> list[str]:
    """One BiFPN layer, coarse to fine and back; ``narrow`` if all levels have its width."""

    def lateral(name: str, level: int) -> str:
        if narrow or level > 2:
            return levels[level]
        with net.scope(f"{name}.lateral"):
            return net.conv_norm("", levels[level], _WIDTH, 1)

    down = {4: levels[4]}
    for level in (3, 2, 1, 0):
        name = f"down{level}"
        above = net.add_node(f"{name}.up", ops.Upsample(), down[level + 1])
        down[level] = _combined(net, name, lateral(name, level), above)
    result = [down[0]]
    for level in (1, 2, 3, 4):
        name = f"up{level}"
        below = net.max_pool(f"{name}.pool", result[-1], 3, 2, 1)
        between = [down[level]] if level < 4 else []
        result.append(_combined(net, name, lateral(name, level), *between, below))
    return result


def _combined(net: NetworkBuilder, name: str, *reads: str) -> str:
    with net.scope(name):
        x = net.activation("silu", net.add_node("sum", ops.FusedSum(), *reads), "silu")
        return net.batch_norm("norm", _separable(net, "", x, _WIDTH))


def _head(net: NetworkBuilder, name: str, levels: list[str], values: int) -> str:
    """Convolutions shared by all levels, with norms per level; returns anchors x values."""
    parts = []
    for level, x in enumerate(levels):
        first = f"{name}.0." if level else None
        with net.scope(f"{name}.{level}"):
            for number in range(_REPEATS):
                x = net.batch_norm(f"norm{number}", _separable(net, f"{number}", x, _WIDTH, first))
                x = net.activation(f"silu{number}", x, "silu")
            width = values * _ANCHORS_PER_POSITION
            x = _separable(net, "_last", x, width, first, bias=True)
            parts.append(net.reshape("rows", net.transpose("last", x, 1, 2, 0), -1, values))
    return net.concat(f"{name}.all", parts)


def _separable(
    net: NetworkBuilder,
    suffix: str,
    x: str,
    out: int,
    shared_with: str | None = None,
    bias: bool = False,
) -> str:
    owner = (lambda layer: f"{shared_with}{layer}") if shared_with else (lambda _: None)
    each, all_ = f"each{suffix}", f"all{suffix}"
    x = net.conv(each, x, _WIDTH, 3, 1, 1, groups=_WIDTH, shares=owner(each))
    return net.conv(all_, x, out, 1, bias=bias, shares=owner(all_))
