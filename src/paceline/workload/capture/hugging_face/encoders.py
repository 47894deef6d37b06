"""Text encoders: BERT, RoBERTa, DistilBERT."""

from paceline.workload.capture.hugging_face.common import common_sizes, position_rows
from paceline.workload.capture.hugging_face.fields import Config
from paceline.workload.zoo.transformers import TransformerShape


def bert(config: Config) -> TransformerShape:
    common = common_sizes(config)
    return TransformerShape(
        **common | {"head": config.head("masked")},
        inner=config.size("intermediate_size", "hidden_dim"),
        learned_positions=position_rows(config, common),
        segments=config.size("type_vocab_size", default=2),
        activation=config.activation("hidden_act", "activation", default="gelu"),
        causal=False,
        norm_at="after_sum",
        embedding_norm=True,
        tied=config.flag("tie_word_embeddings", True),
        head_bias=True,
    )


def roberta(config: Config) -> TransformerShape:
    shape = bert(config)
    # Two rows are reserved for padding (fairseq), so the sequence is two shorter than the table.
    return shape.replaced(sequence=max(1, min(shape.sequence, shape.learned_positions - 2)))


def distilbert(config: Config) -> TransformerShape:
    return bert(config).replaced(segments=0)
