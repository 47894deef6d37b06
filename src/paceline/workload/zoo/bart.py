"""BART (Lewis et al. 2020): encoder and decoder with learned positions and one embedding table.

Source and target have the same length.
"""

from dataclasses import dataclass

from paceline.workload.graph import Graph
from paceline.workload.zoo.transformers import TransformerShape
from paceline.workload.zoo.transformers.encoder_decoder import encoder_decoder

_POSITIONS = 1026
"""1,024 and the two rows that fairseq reserves for padding."""


@dataclass(frozen=True, slots=True)
class BartSize:
    """Width, layers of the encoder (and of the decoder), and heads."""

    hidden: int
    layers: int
    heads: int


BART = {"bart_base": BartSize(768, 6, 12), "bart_large": BartSize(1024, 12, 16)}
"""The published sizes: 139,420,416 and 406,291,456 parameters."""


def bart(name: str) -> Graph:
    size = BART[name]
    encoder = TransformerShape.multi_head(
        size.hidden,
        size.layers,
        size.heads,
        vocabulary=50_265,
        sequence=1024,
        learned_positions=_POSITIONS,
        causal=False,
        norm_at="after_sum",
        embedding_norm=True,
        dropout=0.1,
    )
    return encoder_decoder(name, encoder, encoder.replaced(causal=True))
