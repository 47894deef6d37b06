"""Recommenders with large embedding tables and sparse gradients: Wide & Deep, DLRM.

Fields with rows of equal width share one table here; recipes have one per field. The wide part
averages its weights; the published one adds them.
"""

from collections.abc import Sequence

from paceline.workload import ops
from paceline.workload.graph import Graph
from paceline.workload.zoo.network_builder import NetworkBuilder

# A click of Criteo has 13 numbers and 26 categories.
_DENSE_FIELDS = 13
_CRITEO_FIELDS = 26
_WIDE_FIELDS = 2
_CRITEO_ROWS = 187_767_399
"""Rows of Criteo's 26 fields on 1 TB of clicks, at most 40 million each, as in MLPerf."""


def wide_deep(name: str, rows: int, width: int, layers: int, hidden: int) -> Graph:
    """Wide & Deep on Criteo (26 deep, 2 wide, 13 dense fields), as in HugeCTR and OneFlow.

    Both tables have ``rows`` rows, the deep one of ``width``; ``layers`` of ``hidden`` follow.
    """
    net = NetworkBuilder(name)
    wide = _wide(net, rows, _WIDE_FIELDS)
    fields = _looked_up(net, "deep", rows, width, _CRITEO_FIELDS)
    numbers = net.image(_DENSE_FIELDS, name="numbers")
    x = net.concat("deep.input", (net.flatten("deep.flatten", fields), numbers))
    score = _perceptron(net, "deep", x, (*[hidden] * layers, 1), dropout=0.5)
    return _click_loss(net, net.add("score", wide, score))


def wide_deep_outbrain() -> Graph:
    """NVIDIA's Wide & Deep on Outbrain, five layers of width 1,024: 91,893,370 parameters."""
    net = NetworkBuilder("wide_deep_outbrain")
    # 16 of 22 fields have one value; 2 have up to 6 and 4 up to 3, which are averaged.
    wide = _wide(net, 688_216, 16 + 2 * 6 + 4 * 3)
    numbers = net.image(32, name="numbers")
    wide = net.add("wide.sum", wide, net.linear("wide.numbers", numbers, 1))
    documents = _looked_up(net, "documents", 650_000, 128, 3)
    table = _looked_up(net, "fields", 38_200, 64, 8)
    parts = [net.flatten("documents.flatten", documents), net.flatten("fields.flatten", table)]
    for name, fields, values in (("entities", 2, 6), ("topics", 4, 3)):
        chosen = net.integers(name, 38_200, fields, values)
        table_again = ops.Embedding(38_200, 64, sparse=True)
        rows = net.add_node(f"{name}.rows", table_again, chosen, shares="fields.table")
        rows = net.reshape(f"{name}.each", net.transpose(f"{name}.last", rows, 0, 2, 1), -1, values)
        parts.append(net.global_avg_pool(f"{name}.mean", rows))
    flags = net.image(16, name="flags")
    x = net.concat("deep.input", (*parts, flags, numbers))
    score = _perceptron(net, "deep", x, (*[1024] * 5, 1), dropout=0.1)
    return _click_loss(net, net.add("score", wide, score))


def dlrm() -> Graph:
    """DLRM (Naumov et al. 2019) on Criteo 1TB as in MLPerf: 24,036,595,969 parameters."""
    net = NetworkBuilder("dlrm")
    numbers = net.image(_DENSE_FIELDS, name="numbers")
    x = net.activation("bottom.relu", _perceptron(net, "bottom", numbers, (512, 256, 128)))
    fields = _looked_up(net, "fields", _CRITEO_ROWS, 128, _CRITEO_FIELDS)
    features = net.concat("features", (net.reshape("bottom.row", x, 1, 128), fields))
    pairs = net.add_node("pairs", ops.DotInteraction(), features)
    x = net.concat("top.input", (x, pairs))
    return _click_loss(net, _perceptron(net, "top", x, (1024, 1024, 512, 256, 1)))


def _wide(net: NetworkBuilder, rows: int, fields: int) -> str:
    """A linear model: one weight per value of each field, averaged."""
    chosen = _looked_up(net, "wide", rows, 1, fields)
    return net.global_avg_pool("wide.mean", net.reshape("wide.row", chosen, 1, fields))


def _looked_up(net: NetworkBuilder, name: str, rows: int, width: int, fields: int) -> str:
    chosen = net.integers(f"{name}_fields", rows, fields)
    return net.add_node(f"{name}.table", ops.Embedding(rows, width, sparse=True), chosen)


def _perceptron(
    net: NetworkBuilder, name: str, x: str, widths: Sequence[int], dropout: float = 0.0
) -> str:
    for number, width in enumerate(widths, start=1):
        x = net.linear(f"{name}.fc{number}", x, width)
        if number < len(widths):
            x = net.activation(f"{name}.relu{number}", x)
            x = net.dropout(f"{name}.dropout{number}", x, dropout) if dropout else x
    return x


def _click_loss(net: NetworkBuilder, score: str) -> Graph:
    clicked = net.image(1, name="clicked")
    return net.build(net.elementwise_loss("loss", "binary_cross_entropy", score, clicked))
