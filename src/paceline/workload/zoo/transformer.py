"""The encoder-decoder Transformer (Vaswani et al. 2017) for translation.

One table of 37,000 word pieces serves both embeddings and the output; attention has no biases;
positions are sinusoids, which have no parameters. Source and target have the same length.
"""

from paceline.workload.graph import Graph
from paceline.workload.zoo.transformers import TransformerShape
from paceline.workload.zoo.transformers.encoder_decoder import encoder_decoder


def transformer(name: str, hidden: int, heads: int, sequence: int = 256) -> Graph:
    """Build six encoder and six decoder layers; base is 512 wide with 8 heads, big 1024 with 16."""
    encoder = TransformerShape.multi_head(
        hidden,
        6,
        heads,
        vocabulary=37_000,
        sequence=sequence,
        activation="relu",
        causal=False,
        norm_at="after_sum",
        query_bias=False,
        out_bias=False,
        dropout=0.1,
    )
    return encoder_decoder(name, encoder, encoder.replaced(causal=True))
