"""BERT (Devlin et al. 2019) with its pre-training heads and with heads for fine-tuning.

``bert_base`` and ``bert_large`` score every position, as Hugging Face Transformers does. Programs
with published results score only the masked positions: ``bert_base_pretraining``.
"""

import math
from typing import Any

from paceline.workload.graph import Graph
from paceline.workload.zoo.sizes import BertSize
from paceline.workload.zoo.transformers import TransformerShape, transformer

_MASKED_SHARE = 20 / 128
"""``max_predictions_per_seq`` of the published recipes: 20 of 128 tokens, 80 of 512."""


def bert(name: str, size: BertSize) -> Graph:
    """Build the pre-training network that scores masked tokens at every position."""
    return transformer(name, _shape(size))


def bert_pretraining(name: str, size: BertSize, sequence: int = 512) -> Graph:
    """Build the pre-training network that scores the masked positions only."""
    scored = math.ceil(_MASKED_SHARE * sequence)
    return transformer(name, _shape(size, sequence=sequence, scored_positions=scored))


def bert_labels(name: str, size: BertSize, labels: int, sequence: int) -> Graph:
    """Build the network that is fine-tuned to label tokens.

    Two ``labels`` mark the start and end of an answer (SQuAD), three tag entities (B, I, O).
    """
    return transformer(name, _shape(size, "token_classes", sequence=sequence, labels=labels))


def _shape(
    size: BertSize, head: str = "pretraining", sequence: int | None = None, **choices: Any
) -> TransformerShape:
    return TransformerShape.multi_head(
        size.hidden,
        size.layers,
        size.heads,
        vocabulary=size.vocabulary,
        sequence=sequence or size.positions,
        head=head,
        learned_positions=size.positions,
        segments=2,
        causal=False,
        joint_projection=True,
        norm_at="after_sum",
        embedding_norm=True,
        dropout=0.1,
        head_bias=True,
        **choices,
    )
