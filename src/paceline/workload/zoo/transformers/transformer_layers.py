"""Attention, feed-forward (dense or experts) and norms of one layer."""

from paceline.workload import ops
from paceline.workload.zoo.network_builder import NetworkBuilder
from paceline.workload.zoo.transformers.shape import (
    Experts,
    LatentAttention,
    LayerKind,
    TransformerShape,
)

_ADAPTER_DROPOUT = 0.1


def attention(
    net: NetworkBuilder,
    x: str,
    shape: TransformerShape,
    window: int = 0,
    *,
    memory: str | None = None,
    first: str | None = None,
) -> str:
    """Add self-attention, or cross-attention to the tokens of a ``memory``.

    ``first`` is the attention of the first layer, whose table of relative positions all layers
    share (T5).
    """
    with net.scope("attention" if memory is None else "cross"):
        if shape.latent is not None:
            query, key, value = _from_latent(net, x, shape, shape.latent)
        else:
            query, key, value = _projected(net, x, memory or x, shape)
        distances = shape.relative_buckets if memory is None else 0
        op = ops.Attention(
            shape.heads,
            shape.heads if shape.latent else shape.kv_heads,
            shape.latent.plain_dim + shape.latent.rotary_dim if shape.latent else shape.head_dim,
            causal=shape.causal and memory is None,
            value_dim=shape.latent.value_dim if shape.latent else 0,
            window=window,
            sinks=shape.sinks,
            relative_buckets=distances,
        )
        y = net.add_node("scores", op, query, key, value, shares=first if distances else None)
        if shape.attention_gate:
            gate = net.linear("gate", x, shape.heads * shape.head_dim, shape.query_bias)
            y = net.multiply("gated", y, net.activation("gate_activation", gate, "sigmoid"))
        return _linears(net, y, shape, {"out": shape.hidden}, shape.out_bias)[0]


def _projected(
    net: NetworkBuilder, x: str, memory: str, shape: TransformerShape
) -> tuple[str, str, str]:
    wide, narrow = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
    bias = shape.query_bias
    if shape.joint_projection:
        joint = net.linear("qkv", x, wide + 2 * narrow, bias)
        query = net.part("query", joint, 1, 0, wide)
        key = net.part("key", joint, 1, wide, wide + narrow)
        value = net.part("value", joint, 1, wide + narrow, wide + 2 * narrow)
    elif memory == x and shape.key_bias is None:
        widths = {"query": wide, "key": narrow, "value": narrow}
        query, key, value = _linears(net, x, shape, widths, bias)
    else:
        query = net.linear("query", x, wide, bias)
        key = net.linear("key", memory, narrow, bias if shape.key_bias is None else shape.key_bias)
        value = net.linear("value", memory, narrow, bias)
    query = norm_of_heads(net, "query_norm", query, wide, shape)
    key = norm_of_heads(net, "key_norm", key, narrow, shape)
    if shape.rotary:
        query = net.add_node("rotary_query", ops.Rotary(shape.head_dim), query)
        key = net.add_node("rotary_key", ops.Rotary(shape.head_dim), key)
    return query, key, value


def _linears(
    net: NetworkBuilder, x: str, shape: TransformerShape, widths: dict[str, int], bias: bool
) -> list[str]:
    """Linear maps of one input by name and width, with adapters if the shape has any."""
    made = [net.linear(name, x, width, bias) for name, width in widths.items()]
    if not shape.adapter_rank:
        return made
    first = next(iter(widths))
    with net.frozen(False):
        narrow = net.dropout(f"{first}_adapter_dropout", x, _ADAPTER_DROPOUT)
        narrow = net.linear(f"{first}_down", narrow, shape.adapter_rank, bias=False)
        return [
            net.add(f"{name}_sum", y, net.linear(f"{name}_up", narrow, width, bias=False))
            for y, (name, width) in zip(made, widths.items(), strict=True)
        ]


def _from_latent(
    net: NetworkBuilder, x: str, shape: TransformerShape, latent: LatentAttention
) -> tuple[str, str, str]:
    """MLA: low-rank queries, keys and values from a latent, one rotary key for all heads."""
    heads, plain, rotary = shape.heads, latent.plain_dim, latent.rotary_dim
    narrow = x
    if latent.query_rank:
        narrow = net.linear("query_down", x, latent.query_rank, shape.query_bias)
        narrow = net.add_node("query_norm", ops.RmsNorm(), narrow)
    query = net.linear("query", narrow, heads * (plain + rotary), bias=False)
    apart = net.reshape("query_heads", query, -1, heads, plain + rotary)
    turned = net.part("query_rotary", apart, 2, plain, plain + rotary)
    turned = net.reshape("query_rotary_joined", turned, -1, heads * rotary)
    turned = net.add_node("rotary_query", ops.Rotary(rotary), turned)
    turned = net.reshape("query_turned", turned, -1, heads, rotary)
    query = net.concat("query_both", [net.part("query_plain", apart, 2, 0, plain), turned], 2)

    down = net.linear("latent_down", x, latent.key_rank + rotary, shape.query_bias)
    inner = net.add_node(
        "latent_norm", ops.RmsNorm(), net.part("latent", down, 1, 0, latent.key_rank)
    )
    up = net.linear("latent_up", inner, heads * (plain + latent.value_dim), bias=False)
    both = net.reshape("latent_heads", up, -1, heads, plain + latent.value_dim)
    common = net.part("key_rotary", down, 1, latent.key_rank, latent.key_rank + rotary)
    common = net.add_node("rotary_key", ops.Rotary(rotary), common)
    common = net.reshape("key_turned", common, -1, 1, rotary)
    common = net.add_node("key_common", ops.Expand(1, heads), common)
    key = net.concat("key_both", [net.part("key_plain", both, 2, 0, plain), common], 2)
    value = net.part("value_heads", both, 2, plain, plain + latent.value_dim)
    return (
        net.reshape("query_joined", query, -1, heads * (plain + rotary)),
        net.reshape("key_joined", key, -1, heads * (plain + rotary)),
        net.reshape("value", value, -1, heads * latent.value_dim),
    )


def feed_forward(net: NetworkBuilder, x: str, shape: TransformerShape, kind: LayerKind) -> str:
    if kind.feed_forward == "experts" and shape.experts is not None:
        return _experts(net, x, shape, shape.experts)
    return _dense(net, "mlp", x, shape.inner, shape)


def _experts(net: NetworkBuilder, x: str, shape: TransformerShape, experts: Experts) -> str:
    moe = ops.MixtureOfExperts(
        experts.count,
        experts.top_k,
        experts.inner,
        gated=shape.gated,
        bias=experts.bias,
        router_width=shape.hidden if experts.latent else 0,
    )
    if experts.latent:
        narrow = net.linear("experts_latent_in", x, experts.latent, bias=False)
        y = net.add_node("experts", moe, narrow)
        y = net.linear("experts_latent_out", y, shape.hidden, bias=False)
    else:
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


def norm(net: NetworkBuilder, name: str, x: str, shape: TransformerShape) -> str:
    if shape.norm == "rms":
        return net.add_node(name, ops.RmsNorm(), x)
    return net.layer_norm(name, x, shape.norm_bias)


def norm_of_heads(
    net: NetworkBuilder, name: str, x: str, width: int, shape: TransformerShape
) -> str:
    """Add a norm of queries or keys: over their whole width, or per head with one scale."""
    if shape.norm_of_heads == "no":
        return x
    if shape.norm_of_heads == "whole":
        return norm(net, name, x, shape)
    apart = net.reshape(f"{name}_heads", x, -1, shape.head_dim)
    y = norm(net, name, apart, shape)
    return net.reshape(f"{name}_joined", y, -1, width)


def dropout(net: NetworkBuilder, name: str, x: str, shape: TransformerShape) -> str:
    """Add dropout where the architecture is trained with it."""
    return net.dropout(name, x, shape.dropout) if shape.dropout else x
