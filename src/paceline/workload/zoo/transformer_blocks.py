"""Blocks that the transformer families share."""

from paceline.workload.zoo.builder import NetworkBuilder


def pre_norm_block(
    net: NetworkBuilder,
    x: str,
    hidden: int,
    heads: int,
    *,
    causal: bool,
    activation: str,
) -> str:
    """Attention and feed-forward of four times the width, each after a norm (GPT-2, ViT)."""
    y = self_attention(net, net.layer_norm("norm1", x), hidden, heads, causal)
    x = net.add("add1", x, y)
    y = feed_forward(net, net.layer_norm("norm2", x), hidden, 4 * hidden, activation)
    return net.add("add2", x, y)


def self_attention(net: NetworkBuilder, x: str, hidden: int, heads: int, causal: bool) -> str:
    """Attention of tokens to each other; one matrix makes queries, keys and values."""
    with net.scope("attention"):
        joint = net.linear("qkv", x, 3 * hidden)
        query, key, value = (
            net.part(name, joint, 1, part * hidden, (part + 1) * hidden)
            for part, name in enumerate(("query", "key", "value"))
        )
        y = net.attention(
            "scores", query, key, value, heads=heads, head_dim=hidden // heads, causal=causal
        )
        return net.linear("out", y, hidden)


def cross_attention(
    net: NetworkBuilder,
    name: str,
    x: str,
    memory: str,
    hidden: int,
    heads: int,
    *,
    causal: bool = False,
    bias: bool = True,
    out_bias: bool | None = None,
) -> str:
    """Attention of tokens to those of a memory; queries, keys and values of matrices each.

    ``out_bias`` is that of the last matrix, ``bias`` unless given.
    """
    with net.scope(name):
        query = net.linear("query", x, hidden, bias)
        key = net.linear("key", memory, hidden, bias)
        value = net.linear("value", memory, hidden, bias)
        y = net.attention(
            "scores", query, key, value, heads=heads, head_dim=hidden // heads, causal=causal
        )
        return net.linear("out", y, hidden, bias if out_bias is None else out_bias)


def feed_forward(net: NetworkBuilder, x: str, hidden: int, inner: int, activation: str) -> str:
    """Two matrices with a function between them."""
    with net.scope("mlp"):
        y = net.activation("activation", net.linear("up", x, inner), activation)
        return net.linear("down", y, hidden)
