"""Published sizes of BERT, GPT and Llama; importing them builds no network."""

from dataclasses import dataclass

BERT_VOCABULARY = 30_522
"""Word pieces of the uncased models."""

MEGATRON_VOCABULARY = 51_200
"""GPT-2's 50,257 tokens padded as Megatron-LM pads them."""

MPT_VOCABULARY = 50_368
"""GPT-NeoX's tokens padded as MPT pads them."""

ADAPTER_RANK = 16
"""Rank of the adapters of MLPerf's fine-tuning benchmark."""


@dataclass(frozen=True, slots=True)
class GptSize:
    """Sizes of a GPT; ``positions`` are learned positions and the default sequence length."""

    hidden: int
    layers: int
    heads: int
    vocabulary: int = MEGATRON_VOCABULARY
    positions: int = 2048


@dataclass(frozen=True, slots=True)
class BertSize(GptSize):
    """Sizes of a BERT."""

    vocabulary: int = BERT_VOCABULARY
    positions: int = 512


BERT = {"bert_base": BertSize(768, 12, 12), "bert_large": BertSize(1024, 24, 16)}
"""The two published sizes, uncased."""

BIOBERT = BertSize(768, 12, 12, vocabulary=28_996)
"""BioBERT continues from the cased base model."""

GPT2 = {
    "gpt2": GptSize(768, 12, 12, 50_257, 1024),
    "gpt2_medium": GptSize(1024, 24, 16, 50_257, 1024),
    "gpt2_large": GptSize(1280, 36, 20, 50_257, 1024),
    "gpt2_xl": GptSize(1600, 48, 25, 50_257, 1024),
    # The smallest with the vocabulary padded to 50,304, as benchmarks run it.
    "gpt2_small": GptSize(768, 12, 12, 50_304, 1024),
}
"""GPT-2 (Radford et al. 2019), in the sizes of the released weights."""

MEGATRON = {
    "gpt3_125m": GptSize(768, 12, 12),
    "gpt3_350m": GptSize(1024, 24, 16),
    "gpt3_760m": GptSize(1536, 24, 16),
    "gpt3_1.3b": GptSize(2048, 24, 16),
    "gpt3_2.7b": GptSize(2560, 32, 32),
    "gpt3_5b": GptSize(4096, 24, 32),
    "gpt3_6.7b": GptSize(4096, 32, 32),
    "gpt3_13b": GptSize(5120, 40, 40),
    "gpt3_20b": GptSize(6144, 44, 48),
    "gpt3_175b": GptSize(12_288, 96, 96),
    "megatron_22b": GptSize(6144, 48, 64),
    "mt_nlg_530b": GptSize(20_480, 105, 128),
    "gpt_1t": GptSize(25_600, 128, 160),
}
"""Sizes of the GPT-3 paper, of NeMo and of Megatron's (2205.05198), with Megatron's vocabulary."""

MPT = {
    "mpt_125m": GptSize(768, 12, 12, MPT_VOCABULARY),
    "mpt_350m": GptSize(1024, 24, 16, MPT_VOCABULARY),
    "mpt_760m": GptSize(1536, 24, 12, MPT_VOCABULARY),
    "mpt_1b": GptSize(2048, 24, 16, MPT_VOCABULARY),
    "mpt_3b": GptSize(2560, 32, 20, MPT_VOCABULARY),
    "mpt_7b": GptSize(4096, 32, 32, MPT_VOCABULARY),
    "mpt_13b": GptSize(5120, 40, 40, MPT_VOCABULARY),
    "mpt_30b": GptSize(7168, 48, 56, MPT_VOCABULARY),
    "mpt_70b": GptSize(8192, 80, 64, MPT_VOCABULARY),
}
"""Sizes benchmarked by LLM Foundry, with as many learned positions as the sequence is long."""


@dataclass(frozen=True, slots=True)
class LlamaSize:
    """Sizes of a Llama; with ``experts`` each token uses ``top_k`` of them.

    ``adapter_rank`` is the rank of adapters that are trained instead of the weights.
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
