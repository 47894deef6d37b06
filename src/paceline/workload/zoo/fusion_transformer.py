"""The Temporal Fusion Transformer (Lim et al. 2021) in NVIDIA's recipe for two data sets.

It predicts quantiles of the next day from a week of hourly values and three known series. The last
state of the first LSTM is also used as initial cell of the second, and smooth L1 replaces the
quantile loss. A matrix of 16,384 parameters that the recipe never uses is left out.
"""

from paceline.workload import ops
from paceline.workload.graph import Graph
from paceline.workload.zoo.network_builder import NetworkBuilder

_HIDDEN, _HEADS = 128, 4
_HOURS, _PAST = 192, 168
_KNOWN = 3
_QUANTILES = 3

SERIES = {"tft_electricity": (369, 0.1), "tft_traffic": (963, 0.3)}
"""Number of consumers or sensors of each data set, and the dropout of its recipe."""


class _Fusion:
    """Adds the parts of the network, all with one width and dropout."""

    def __init__(self, net: NetworkBuilder, dropout: float) -> None:
        self.net, self.dropout = net, dropout

    def gated(self, name: str, x: str, out: int) -> str:
        net = self.net
        with net.scope(name):
            both = net.linear("both", x, 2 * out)
            gate = net.activation("sigmoid", net.part("gate", both, -1, out, 2 * out), "sigmoid")
            return net.multiply("product", net.part("values", both, -1, 0, out), gate)

    def residual(
        self,
        name: str,
        x: str,
        out: int | None = None,
        context: str | None = None,
        dropout: bool = True,
    ) -> str:
        """Gated residual network; ``context`` is added to every hour."""
        net = self.net
        with net.scope(name):
            y = net.linear("first", x, _HIDDEN)
            if context is not None:
                bias = net.linear("context", context, _HIDDEN, bias=False)
                y = net.transpose("hours_last", y, 1, 0)
                y = net.add_node("with_context", ops.AddPerChannel(), y, bias)
                y = net.transpose("hours_first", y, 1, 0)
            y = net.linear("second", net.activation("elu", y, "elu"), _HIDDEN)
            y = net.dropout("dropout", y, self.dropout) if dropout else y
            y = self.gated("gate", y, out or _HIDDEN)
            shortcut = net.linear("shortcut", x, out) if out else x
            y = net.add("add", y, shortcut)
            return y if out == 1 else net.layer_norm("norm", y)

    def selected(self, name: str, variables: list[str], context: str, hours: int) -> str:
        """Variable selection: variables (hours x width) weighted by a network of all of them."""
        net, count = self.net, len(variables)
        with net.scope(name):
            joint = net.concat("joint", variables, axis=1)
            weights = self.residual("weights", joint, count, context, dropout=False)
            weights = net.activation("softmax", weights, "softmax")
            columns = [
                net.reshape(f"column{number}", self.residual(f"own{number}", x), hours, _HIDDEN, 1)
                for number, x in enumerate(variables)
            ]
            weights = net.reshape("weight_column", weights, hours, count, 1)
            stacked = net.concat("stacked", columns, axis=2)
            chosen = net.add_node("chosen", ops.MatrixProduct(), stacked, weights)
            return net.reshape("selection", chosen, hours, _HIDDEN)

    def joined(self, name: str, x: str, shortcut: str) -> str:
        """Gate, residual sum and norm."""
        net = self.net
        y = net.add(f"{name}.add", self.gated(f"{name}.gate", x, _HIDDEN), shortcut)
        return net.layer_norm(f"{name}.norm", y)

    def attention(self, x: str) -> str:
        """Interpretable attention: heads share their values and are averaged."""
        net, head = self.net, _HIDDEN // _HEADS
        with net.scope("attention"):
            both = net.linear("qkv", x, (2 * _HEADS + 1) * head, bias=False)
            query, key = (
                net.reshape(
                    f"{part}s",
                    net.part(part, both, 1, start, start + _HIDDEN),
                    _HOURS,
                    _HEADS,
                    head,
                )
                for part, start in (("query", 0), ("key", _HIDDEN))
            )
            value = net.part("value", both, 1, 2 * _HIDDEN, 2 * _HIDDEN + head)
            query = net.transpose("query_heads", query, 1, 0, 2)
            key = net.transpose("key_heads", key, 1, 2, 0)
            scores = net.add_node("scores", ops.MatrixProduct(), query, key)
            rows = net.reshape("rows", net.activation("softmax", scores, "softmax"), -1, _HOURS)
            made = net.add_node("values", ops.MatrixProduct(), rows, value)
            made = net.transpose("heads_last", net.reshape("heads", made, _HEADS, -1), 1, 0)
            mean = net.reshape("mean_rows", net.global_avg_pool("mean", made), _HOURS, head)
            out = net.linear("out", mean, _HIDDEN, bias=False)
            return net.dropout("dropout", out, self.dropout)


def fusion_transformer(name: str) -> Graph:
    net, (series, dropout) = NetworkBuilder(name), SERIES[name]
    fusion = _Fusion(net, dropout)
    which = net.integers("series", series, 1)
    static = net.embedding("series_embedding", which, series, _HIDDEN)
    weight = fusion.residual("static.weights", static, 1, dropout=False)
    weight = net.flatten("static.weight", net.activation("static.softmax", weight, "softmax"))
    static = net.multiply("static.chosen", fusion.residual("static.own", static), weight)
    static = net.flatten("static.flatten", static)
    selecting, enriching, state, cell = (
        fusion.residual(f"static.{part}", static)
        for part in ("selection", "enrichment", "state", "cell")
    )
    known = net.image(_HOURS, _KNOWN, name="known")
    series_known = [
        net.linear(
            f"known{number}", net.part(f"known{number}_only", known, 1, number, number + 1), _HIDDEN
        )
        for number in range(_KNOWN)
    ]
    seen = net.linear("observed_embedding", net.image(_PAST, 1, name="observed"), _HIDDEN)
    past = [net.part(f"past{n}", x, 0, 0, _PAST) for n, x in enumerate(series_known)]
    coming = [net.part(f"coming{n}", x, 0, _PAST, _HOURS) for n, x in enumerate(series_known)]
    history = fusion.selected("history", [*past, seen], selecting, _PAST)
    future = fusion.selected("future", coming, selecting, _HOURS - _PAST)
    encoded = net.add_node("encoder", ops.Lstm(_HIDDEN), history, state, cell)
    last = net.flatten("encoder_last", net.part("encoder_end", encoded, 0, _PAST - 1, _PAST))
    decoded = net.add_node("decoder", ops.Lstm(_HIDDEN), future, last, last)
    x = fusion.joined(
        "input", net.concat("states", (encoded, decoded)), net.concat("inputs", (history, future))
    )
    enriched = fusion.residual("enriched", x, context=enriching)
    attended = fusion.attention(enriched)
    attended, enriched, x = (
        net.part(f"{part}_coming", y, 0, _PAST, _HOURS)
        for part, y in (("attended", attended), ("enriched", enriched), ("input", x))
    )
    y = fusion.residual("positionwise", fusion.joined("attended", attended, enriched))
    quantiles = net.linear("quantiles", fusion.joined("output", y, x), _QUANTILES)
    wanted = net.image(_HOURS - _PAST, _QUANTILES, name="wanted")
    return net.build(net.elementwise_loss("loss", "smooth_l1", quantiles, wanted))
