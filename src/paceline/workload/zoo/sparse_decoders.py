"""Mixture-of-experts decoders: DeepSeek-V3, Kimi K2, Qwen3, GPT-OSS, Llama 4 (text model).

Sizes are those of the published weights without multi-token prediction layers. The default is
4,096 tokens per sample.
"""

from paceline.workload.graph import Graph
from paceline.workload.zoo.llama import LLAMA_STYLE
from paceline.workload.zoo.transformers import (
    Experts,
    LatentAttention,
    TransformerShape,
    layer_kinds,
    transformer,
)

_SEQUENCE = 4096


def sparse_decoder(name: str) -> Graph:
    """Build one of `SPARSE_DECODERS` with its loss over every token."""
    return transformer(name, SPARSE_DECODERS[name])


def _deepseek(heads: int, vocabulary: int, experts: int, dense_layers: int) -> TransformerShape:
    return TransformerShape(
        7168,
        61,
        vocabulary,
        _SEQUENCE,
        heads,
        heads,
        inner=18_432,
        tied=False,
        latent=LatentAttention(1536, 512, plain_dim=128, rotary_dim=64, value_dim=128),
        experts=Experts(experts, 8, 2048, shared_inner=2048),
        kinds=layer_kinds(61, lambda layer: layer >= dense_layers),
        **LLAMA_STYLE,
    )


def _qwen3(hidden: int, layers: int, heads: int, inner: int) -> TransformerShape:
    return TransformerShape(
        hidden,
        layers,
        151_936,
        _SEQUENCE,
        heads,
        4,
        128,
        inner,
        tied=False,
        norm_of_heads="head",
        experts=Experts(128, 8, inner),
        **LLAMA_STYLE,
    )


def _gpt_oss(layers: int, experts: int) -> TransformerShape:
    """Every other layer has a window of 128 tokens; attention and experts have biases."""
    biases = {"query_bias": True, "out_bias": True}
    return TransformerShape(
        2880,
        layers,
        201_088,
        _SEQUENCE,
        64,
        8,
        64,
        2880,
        tied=False,
        sinks=True,
        experts=Experts(experts, 4, 2880, bias=True),
        kinds=layer_kinds(layers, lambda _: True, lambda layer: 0 if layer % 2 else 128),
        **LLAMA_STYLE | biases,
    )


def _llama4(experts: int, step: int) -> TransformerShape:
    """Every ``step``-th layer has experts; each token uses one and the shared expert."""
    return TransformerShape(
        5120,
        48,
        202_048,
        _SEQUENCE,
        40,
        8,
        128,
        16_384,
        tied=False,
        experts=Experts(experts, 1, 8192, shared_inner=8192),
        kinds=layer_kinds(48, lambda layer: layer % step == step - 1),
        **LLAMA_STYLE,
    )


SPARSE_DECODERS = {
    "deepseek_v3": _deepseek(128, 129_280, 256, dense_layers=3),
    "kimi_k2": _deepseek(64, 163_840, 384, dense_layers=1),
    "qwen3_30b_a3b": _qwen3(2048, 48, 32, 768),
    "qwen3_235b_a22b": _qwen3(4096, 94, 64, 1536),
    "gpt_oss_20b": _gpt_oss(24, 32),
    "gpt_oss_120b": _gpt_oss(36, 128),
    "llama4_scout": _llama4(16, step=1),
    "llama4_maverick": _llama4(128, step=2),
}
"""The published sizes."""
