"""Llama 2 and 3 and Mixtral: RMS norm, rotary positions, gated feed-forward, no biases."""

from dataclasses import dataclass

from paceline.workload import ops
from paceline.workload.graph import Graph
from paceline.workload.zoo.builder import NetworkBuilder


@dataclass(frozen=True, slots=True)
class LlamaSize:
    """Numbers that describe a Llama; ``experts`` of which each token uses ``top_k``, or none."""

    hidden: int
    layers: int
    heads: int
    kv_heads: int
    feed_forward: int
    vocabulary: int
    sequence: int
    tied: bool = False
    experts: int = 0
    top_k: int = 0


LLAMA = {
    "llama2_7b": LlamaSize(4096, 32, 32, 32, 11_008, 32_000, 4096),
    "llama2_13b": LlamaSize(5120, 40, 40, 40, 13_824, 32_000, 4096),
    "llama2_70b": LlamaSize(8192, 80, 64, 8, 28_672, 32_000, 4096),
    "llama3_1b": LlamaSize(2048, 16, 32, 8, 8192, 128_256, 8192, tied=True),
    "llama3_3b": LlamaSize(3072, 28, 24, 8, 8192, 128_256, 8192, tied=True),
    "llama3_8b": LlamaSize(4096, 32, 32, 8, 14_336, 128_256, 8192),
    "llama3_70b": LlamaSize(8192, 80, 64, 8, 28_672, 128_256, 8192),
    "llama3_405b": LlamaSize(16_384, 126, 128, 8, 53_248, 128_256, 8192),
    "mixtral_8x7b": LlamaSize(4096, 32, 32, 8, 14_336, 32_000, 4096, experts=8, top_k=2),
}
"""Sizes of the published weights."""


def llama(name: str, size: LlamaSize) -> Graph:
    """The decoder of a size, with its loss over every token."""
    net = NetworkBuilder(name)
    tokens = net.integers("tokens", size.vocabulary, "sequence")
    x = net.embedding("embedding", tokens, size.vocabulary, size.hidden)
    for layer in range(size.layers):
        with net.scope(f"blocks.{layer}"):
            x = _block(net, x, size)
    x = net.add_node("norm", ops.RmsNorm(), x)
    shares = "embedding" if size.tied else None
    scores = net.linear("head", x, size.vocabulary, bias=False, shares=shares)
    target = net.integers("target", size.vocabulary, "sequence")
    dimensions = {
        "hidden": size.hidden,
        "layers": size.layers,
        "heads": size.heads,
        "kv_heads": size.kv_heads,
        "feed_forward": size.feed_forward,
        "vocabulary": size.vocabulary,
    }
    if size.experts:
        dimensions |= {"experts": size.experts, "top_k": size.top_k}
    return net.build(net.cross_entropy("loss", scores, target), size.sequence, dimensions)


def _block(net: NetworkBuilder, x: str, size: LlamaSize) -> str:
    y = _attention(net, net.add_node("norm1", ops.RmsNorm(), x), size)
    x = net.add("add1", x, y)
    y = net.add_node("norm2", ops.RmsNorm(), x)
    if size.experts:
        moe = ops.MixtureOfExperts(size.experts, size.top_k, size.feed_forward, gated=True)
        y = net.add_node("experts", moe, y)
    else:
        y = _gated_feed_forward(net, y, size)
    return net.add("add2", x, y)


def _attention(net: NetworkBuilder, x: str, size: LlamaSize) -> str:
    head_dim = size.hidden // size.heads
    narrow = head_dim * size.kv_heads
    with net.scope("attention"):
        query = net.linear("query", x, size.hidden, bias=False)
        key = net.linear("key", x, narrow, bias=False)
        value = net.linear("value", x, narrow, bias=False)
        y = net.attention(
            "scores",
            net.add_node("rotary_query", ops.Rotary(head_dim), query),
            net.add_node("rotary_key", ops.Rotary(head_dim), key),
            value,
            heads=size.heads,
            kv_heads=size.kv_heads,
            head_dim=head_dim,
            causal=True,
        )
        return net.linear("out", y, size.hidden, bias=False)


def _gated_feed_forward(net: NetworkBuilder, x: str, size: LlamaSize) -> str:
    with net.scope("mlp"):
        gate = net.activation("silu", net.linear("gate", x, size.feed_forward, bias=False), "silu")
        up = net.linear("up", x, size.feed_forward, bias=False)
        y = net.add_node("product", ops.Multiply(), gate, up)
        return net.linear("down", y, size.hidden, bias=False)
