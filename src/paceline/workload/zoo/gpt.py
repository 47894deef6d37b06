"""Decoders of the GPT kind: GPT-2, GPT-3, Megatron's sizes, MPT, and any other size.

Pre-norm blocks with biases, learned positions, output tied to the embedding, no dropout (as
such models are pre-trained now; GPT-2 itself used 0.1, which changes no product).
"""

from dataclasses import dataclass

from paceline.errors import InputError
from paceline.workload import ops
from paceline.workload.graph import Graph
from paceline.workload.zoo.builder import NetworkBuilder
from paceline.workload.zoo.transformer_blocks import pre_norm_block

MEGATRON_VOCABULARY = 51_200
"""GPT-2's 50,257 tokens padded as Megatron-LM pads them."""

MPT_VOCABULARY = 50_368
"""GPT-NeoX's tokens padded as MPT pads them."""


@dataclass(frozen=True, slots=True)
class GptSize:
    """Numbers that describe a GPT; ``positions`` are the learned ones and the usual sequence."""

    hidden: int
    layers: int
    heads: int
    vocabulary: int = MEGATRON_VOCABULARY
    positions: int = 2048


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
"""The sizes LLM Foundry benchmarks: learned positions, as many as the sequence is long."""


def gpt(name: str, size: GptSize) -> Graph:
    """The decoder of a size, with its loss over every token."""
    if size.hidden % size.heads:
        raise InputError(f"a width of {size.hidden} does not divide by {size.heads} heads")
    net = NetworkBuilder(name)
    tokens = net.integers("tokens", size.vocabulary, "sequence")
    x = net.embedding("embedding", tokens, size.vocabulary, size.hidden)
    x = net.add_node("positions", ops.PositionEmbedding(size.positions), x)
    for layer in range(size.layers):
        with net.scope(f"blocks.{layer}"):
            x = pre_norm_block(net, x, size.hidden, size.heads, causal=True, activation="gelu_tanh")
    x = net.layer_norm("norm", x)
    scores = net.linear("head", x, size.vocabulary, bias=False, shares="embedding")
    target = net.integers("target", size.vocabulary, "sequence")
    dimensions = {
        "hidden": size.hidden,
        "layers": size.layers,
        "heads": size.heads,
        "vocabulary": size.vocabulary,
    }
    return net.build(net.cross_entropy("loss", scores, target), size.positions, dimensions)
