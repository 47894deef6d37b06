"""Feed-forward of a layer: dense, or experts with an optional shared expert."""

from paceline.workload import ops
from paceline.workload.zoo.builder import NetworkBuilder
from paceline.workload.zoo.transformers.shape import Experts, LayerKind, TransformerShape


def feed_forward(net: NetworkBuilder, x: str, shape: TransformerShape, kind: LayerKind) -> str:
    if kind.feed_forward == "experts" and shape.experts is not None:
        return _experts(net, x, shape, shape.experts)
    return _dense(net, "mlp", x, shape.inner, shape)


def _experts(net: NetworkBuilder, x: str, shape: TransformerShape, experts: Experts) -> str:
    moe = ops.MixtureOfExperts(
        experts.count, experts.top_k, experts.inner, gated=shape.gated, bias=experts.bias
    )
    y = net.add_node("experts", moe, x)
    if not experts.shared_inner:
        return y
    shared = _dense(net, "shared_expert", x, experts.shared_inner, shape)
    if experts.shared_gate:
        gate = net.flatten("shared_gate_flat", net.linear("shared_gate", x, 1, bias=False))
        gate = net.activation("shared_gate_sigmoid", gate, "sigmoid")
        shared = net.multiply("shared_gated", shared, gate)
    return net.add("add_shared", y, shared)


def _dense(net: NetworkBuilder, name: str, x: str, inner: int, shape: TransformerShape) -> str:
    with net.scope(name):
        first = net.linear("gate" if shape.gated else "up", x, inner, shape.mlp_bias)
        y = net.activation("activation", first, shape.activation)
        if shape.gated:
            up = net.linear("up", x, inner, shape.mlp_bias)
            y = net.add_node("product", ops.Multiply(), y, up)
        return net.linear("down", y, shape.hidden, shape.mlp_bias)
