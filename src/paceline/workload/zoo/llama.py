"""Llama 2 and 3 and Mixtral: RMS norm, rotary positions, gated feed-forward, no biases.

With low-rank adapters (LoRA, Hu et al. 2021) the weights are frozen and pairs of narrow matrices
beside those of the attention are trained, one pair for queries, keys and values together, as
MLPerf's benchmark of fine-tuning has them.
"""

from dataclasses import dataclass
from typing import Any

from paceline.workload.graph import Graph
from paceline.workload.zoo.transformers import Experts, TransformerShape, transformer


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

    @property
    def shape(self) -> TransformerShape:
        """The architecture in the words that all transformers are described by."""
        experts = Experts(self.experts, self.top_k, self.feed_forward) if self.experts else None
        return TransformerShape(
            self.hidden,
            self.layers,
            self.vocabulary,
            self.sequence,
            self.heads,
            self.kv_heads,
            self.hidden // self.heads,
            self.feed_forward,
            tied=self.tied,
            experts=experts,
            adapter_rank=self.adapter_rank,
            **LLAMA_STYLE,
        )


LLAMA_STYLE: dict[str, Any] = {
    "rotary": True,
    "norm": "rms",
    "activation": "silu",
    "gated": True,
    "query_bias": False,
    "out_bias": False,
    "mlp_bias": False,
}
"""What Llama chose and most decoders after it."""

ADAPTER_RANK = 16
"""Inner width of the adapters of MLPerf's benchmark."""

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
    return transformer(name, size.shape)
