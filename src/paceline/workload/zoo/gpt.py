"""Decoders of the GPT kind: GPT-2, GPT-3, Megatron's sizes, MPT, and any other size.

Pre-norm blocks with biases, learned positions, output tied to the embedding, no dropout (as
such models are pre-trained now; GPT-2 itself used 0.1, which changes no product).
"""

from paceline.errors import InputError
from paceline.workload import ops
from paceline.workload.graph import Graph
from paceline.workload.zoo.builder import NetworkBuilder
from paceline.workload.zoo.sizes import GptSize
from paceline.workload.zoo.transformer_blocks import pre_norm_block


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
    return net.build(net.cross_entropy("loss", scores, target), size.positions, size.dimensions)
