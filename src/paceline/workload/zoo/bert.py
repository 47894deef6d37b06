"""BERT (Devlin et al. 2019) with its pre-training heads, and BioBERT's fine-tuning form.

The masked-word head scores every position, as PyTorch implementations do.
"""

from dataclasses import dataclass

from paceline.errors import InputError
from paceline.workload import ops
from paceline.workload.graph import Graph
from paceline.workload.zoo.builder import NetworkBuilder
from paceline.workload.zoo.transformer_blocks import feed_forward, self_attention

BERT_VOCABULARY = 30_522
"""Word pieces of the uncased models."""

_DROPOUT = 0.1


@dataclass(frozen=True, slots=True)
class BertSize:
    """Numbers that describe a BERT."""

    hidden: int
    layers: int
    heads: int
    vocabulary: int = BERT_VOCABULARY
    positions: int = 512


BERT = {"bert_base": BertSize(768, 12, 12), "bert_large": BertSize(1024, 24, 16)}
"""The two published sizes, uncased."""

BIOBERT = BertSize(768, 12, 12, vocabulary=28_996)
"""BioBERT continues from the cased base model."""


def bert(name: str, size: BertSize) -> Graph:
    """Pre-training: masked words and next sentence."""
    net = NetworkBuilder(name)
    x = _encoder(net, size)
    with net.scope("masked_words"):
        y = net.activation("gelu", net.linear("transform", x, size.hidden), "gelu")
        y = net.layer_norm("norm", y)
        words = net.linear("scores", y, size.vocabulary, shares="embedding.words")
    with net.scope("next_sentence"):
        first = net.flatten("first_only", net.part("first", x, 0, 0, 1))
        pooled = net.activation("tanh", net.linear("pool", first, size.hidden), "tanh")
        order = net.linear("scores", pooled, 2)
    word = net.integers("word", size.vocabulary, "sequence")
    word_loss = net.cross_entropy("word_loss", words, word)
    order_loss = net.cross_entropy("order_loss", order, net.integers("order", 2))
    loss = net.add_node("loss", ops.WeightedSum((1.0, 1.0)), word_loss, order_loss)
    return net.build(loss, size.positions, _dimensions(size))


def biobert_base() -> Graph:
    """Fine-tuning for named entities: three labels for each token."""
    net = NetworkBuilder("biobert_base")
    x = net.dropout("dropout", _encoder(net, BIOBERT), _DROPOUT)
    scores = net.linear("labels", x, 3)
    loss = net.cross_entropy("loss", scores, net.integers("label", 3, "sequence"))
    return net.build(loss, 128, _dimensions(BIOBERT))


def _encoder(net: NetworkBuilder, size: BertSize) -> str:
    if size.hidden % size.heads:
        raise InputError(f"a width of {size.hidden} does not divide by {size.heads} heads")
    tokens = net.integers("tokens", size.vocabulary, "sequence")
    segments = net.integers("segments", 2, "sequence")
    with net.scope("embedding"):
        words = net.embedding("words", tokens, size.vocabulary, size.hidden)
        x = net.add("add", words, net.embedding("segments", segments, 2, size.hidden))
        x = net.add_node("positions", ops.PositionEmbedding(size.positions), x)
        x = net.dropout("dropout", net.layer_norm("norm", x), _DROPOUT)
    for layer in range(size.layers):
        with net.scope(f"blocks.{layer}"):
            y = self_attention(net, x, size.hidden, size.heads, causal=False)
            x = net.layer_norm("norm1", net.add("add1", x, net.dropout("drop1", y, _DROPOUT)))
            y = feed_forward(net, x, size.hidden, 4 * size.hidden, "gelu")
            x = net.layer_norm("norm2", net.add("add2", x, net.dropout("drop2", y, _DROPOUT)))
    return x


def _dimensions(size: BertSize) -> dict[str, int]:
    return {
        "hidden": size.hidden,
        "layers": size.layers,
        "heads": size.heads,
        "vocabulary": size.vocabulary,
    }
