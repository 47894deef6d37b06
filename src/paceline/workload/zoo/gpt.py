"""GPT decoders: GPT-2, GPT-3, the sizes of Megatron-LM and MPT, and free sizes.

Pre-norm blocks with biases, learned positions, output tied to the embedding. No dropout:
current pre-training recipes do not use it. GPT-2 was trained with 0.1, which changes no GEMM.
"""

from paceline.workload.graph import Graph
from paceline.workload.zoo.sizes import GptSize
from paceline.workload.zoo.transformers import TransformerShape, transformer


def gpt(name: str, size: GptSize) -> Graph:
    shape = TransformerShape.multi_head(
        size.hidden,
        size.layers,
        size.heads,
        vocabulary=size.vocabulary,
        sequence=size.positions,
        learned_positions=size.positions,
        activation="gelu_tanh",
        joint_projection=True,
    )
    return transformer(name, shape)
