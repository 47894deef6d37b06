"""Llama 2 and 3 and Mixtral: RMS norm, rotary positions, gated feed-forward, no biases.

With low-rank adapters (LoRA, Hu et al. 2021) the weights are frozen and adapters of the attention
are trained. Queries, keys and values share the first matrix of theirs, as in MLPerf's fine-tuning
benchmark.
"""

from typing import Any

from paceline.workload.graph import Graph
from paceline.workload.zoo.sizes import LlamaSize
from paceline.workload.zoo.transformers import Experts, TransformerShape, transformer

LLAMA_STYLE: dict[str, Any] = {
    "rotary": True,
    "norm": "rms",
    "activation": "silu",
    "gated": True,
    "query_bias": False,
    "out_bias": False,
    "mlp_bias": False,
}
"""Choices of Llama and of most decoders after it."""


def llama(name: str, size: LlamaSize) -> Graph:
    experts = Experts(size.experts, size.top_k, size.feed_forward) if size.experts else None
    shape = TransformerShape(
        size.hidden,
        size.layers,
        size.vocabulary,
        size.sequence,
        size.heads,
        size.kv_heads,
        size.hidden // size.heads,
        size.feed_forward,
        tied=size.tied,
        experts=experts,
        adapter_rank=size.adapter_rank,
        **LLAMA_STYLE,
    )
    return transformer(name, shape)
