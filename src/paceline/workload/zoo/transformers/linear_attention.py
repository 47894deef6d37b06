"""Gated delta rule (Qwen3-Next) and lightning attention (MiniMax).

Both are computed in chunks as Mamba-2 is; the triangular solve of the delta rule is left out.
"""

from paceline.workload import ops
from paceline.workload.zoo.network_builder import NetworkBuilder
from paceline.workload.zoo.transformers.shape import LinearAttention


def linear_attention(net: NetworkBuilder, x: str, hidden: int, linear: LinearAttention) -> str:
    keys, width = linear.groups * linear.key_dim, linear.heads * linear.value_dim
    with net.scope("linear_attention"):
        if linear.kernel:
            joint = net.linear("in", x, 2 * keys + 2 * width, bias=False)
            rates = net.linear("rates", x, 2 * linear.heads, bias=False)
            mixed = net.part("mixed", joint, 1, 0, 2 * keys + width)
            gate = net.part("gate", joint, 1, 2 * keys + width, 2 * keys + 2 * width)
            mixed = net.add_node("conv", ops.CausalConvolution(linear.kernel, False), mixed)
        else:
            mixed = net.linear("in", x, 2 * keys + width, bias=False)
            gate, rates = net.linear("gate", x, width, bias=False), mixed
        mixed = net.activation("activation", mixed, "silu")
        query = net.part("query", mixed, 1, 0, keys)
        key = net.part("key", mixed, 1, keys, 2 * keys)
        value = net.part("value", mixed, 1, 2 * keys, 2 * keys + width)
        steps = net.part("steps", rates, 1, 0, linear.heads)
        op = ops.StateSpaceDual(linear.heads, linear.groups, linear.key_dim, linear.chunk)
        y = net.add_node("scan", op, value, steps, key, query)
        if linear.kernel:
            y = net.reshape("heads", y, -1, linear.value_dim)
        y = net.add_node("norm", ops.RmsNorm(), y)
        if linear.kernel:
            y = net.reshape("joined", y, -1, width)
        function = "silu" if linear.kernel else "sigmoid"
        y = net.multiply("gated", y, net.activation("gate_activation", gate, function))
        return net.linear("out", y, hidden, bias=False)
