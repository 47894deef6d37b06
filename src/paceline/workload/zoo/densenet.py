"""DenseNet-121 (Huang et al. 2017): every layer reads all earlier ones of its block."""

from paceline.workload.graph import Graph
from paceline.workload.zoo.network_builder import NetworkBuilder

_GROWTH = 32
_BOTTLENECK = 4 * _GROWTH


def densenet121() -> Graph:
    """DenseNet of 6, 12, 24 and 16 layers, growth 32: 7,978,856 parameters."""
    net = NetworkBuilder("densenet121")
    x = net.conv_unit("stem", net.image(3, 224, 224), 64, 7, 2, 3)
    x = net.max_pool("pool0", x, 3, 2, 1)
    width = 64
    for block, layers in enumerate((6, 12, 24, 16), start=1):
        with net.scope(f"block{block}"):
            x = _dense_block(net, x, layers)
        width += layers * _GROWTH
        if block < 4:
            width //= 2
            with net.scope(f"transition{block}"):
                x = net.activation("relu", net.batch_norm("norm", x))
                x = net.avg_pool("pool", net.conv("conv", x, width, 1), 2, 2)
    x = net.activation("relu", net.batch_norm("norm", x))
    scores = net.linear("fc", net.global_avg_pool("pool", x), 1000)
    return net.classifier_loss(scores, classes=1000)


def _dense_block(net: NetworkBuilder, x: str, layers: int) -> str:
    features = [x]
    for layer in range(layers):
        with net.scope(str(layer)):
            y = net.concat("join", features) if layer else x
            y = net.activation("relu1", net.batch_norm("norm1", y))
            y = net.batch_norm("norm2", net.conv("conv1", y, _BOTTLENECK, 1))
            y = net.conv("conv2", net.activation("relu2", y), _GROWTH, 3, 1, 1)
        features.append(y)
    return net.concat("join", features)
