"""Llama 2 and 3 and Mixtral: RMS norm, rotary positions, gated feed-forward, no biases.

With low-rank adapters (LoRA, Hu et al. 2021) the weights are frozen and pairs of narrow matrices
beside those of the attention are trained, one pair for queries, keys and values together, as
MLPerf's benchmark of fine-tuning has them.
"""

from dataclasses import dataclass

from paceline.workload import ops
from paceline.workload.graph import Graph
from paceline.workload.zoo.builder import NetworkBuilder


@dataclass(frozen=True, slots=True)
class LlamaSize:
    """Numbers that describe a Llama; ``experts`` of which each token uses ``top_k``, or none.

    ``adapter_rank`` is the inner width of the adapters that are trained instead of the weights.
    """

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
    adapter_rank: int = 0


ADAPTER_RANK = 16
"""Inner width of the adapters of MLPerf's benchmark."""

_ADAPTER_DROPOUT = 0.1

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
    with net.frozen(size.adapter_rank > 0):
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
        query, key, value = _adapted(
            net, x, size, {"query": size.hidden, "key": narrow, "value": narrow}
        )
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
        return _adapted(net, y, size, {"out": size.hidden})[0]


def _adapted(net: NetworkBuilder, x: str, size: LlamaSize, widths: dict[str, int]) -> list[str]:
    """Linear maps of one input by name and width, with an adapter beside them if there are any."""
    made = [net.linear(name, x, width, bias=False) for name, width in widths.items()]
    if not size.adapter_rank:
        return made
    first = next(iter(widths))
    with net.frozen(False):
        narrow = net.dropout(f"{first}_adapter_dropout", x, _ADAPTER_DROPOUT)
        narrow = net.linear(f"{first}_down", narrow, size.adapter_rank, bias=False)
        return [
            net.add(f"{name}_sum", y, net.linear(f"{name}_up", narrow, width, bias=False))
            for y, (name, width) in zip(made, widths.items(), strict=True)
        ]


def _gated_feed_forward(net: NetworkBuilder, x: str, size: LlamaSize) -> str:
    with net.scope("mlp"):
        gate = net.activation("silu", net.linear("gate", x, size.feed_forward, bias=False), "silu")
        up = net.linear("up", x, size.feed_forward, bias=False)
        y = net.add_node("product", ops.Multiply(), gate, up)
        return net.linear("down", y, size.hidden, bias=False)
