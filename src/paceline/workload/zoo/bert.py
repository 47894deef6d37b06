"""BERT (Devlin et al. 2019) with its pre-training heads, and the forms it is fine-tuned in.

``bert_base`` and ``bert_large`` score every position, as PyTorch libraries do. The programs that
results are published of score the masked words only: ``bert_base_pretraining``.
"""

import math
from dataclasses import replace

from paceline.errors import InputError
from paceline.workload import ops
from paceline.workload.graph import Graph
from paceline.workload.zoo.builder import NetworkBuilder
from paceline.workload.zoo.sizes import BertSize
from paceline.workload.zoo.transformer_blocks import feed_forward, self_attention

_DROPOUT = 0.1
_MASKED_SHARE = 20 / 128
"""Positions that pre-training programs score: 20 of 128, 80 of 512."""


def bert(name: str, size: BertSize) -> Graph:
    """Pre-training: masked words, scored at every position, and next sentence."""
    net = NetworkBuilder(name)
    x = _encoder(net, size)
    return _pretrained(net, size, x, x, net.integers("word", size.vocabulary, "sequence"))


def bert_pretraining(name: str, size: BertSize, sequence: int = 512) -> Graph:
    """Pre-training that scores the masked words only, as published programs do."""
    net = NetworkBuilder(name)
    x = _encoder(net, size)
    count = math.ceil(_MASKED_SHARE * sequence)
    masked = net.part("masked", x, 0, 0, count)
    graph = _pretrained(net, size, x, masked, net.integers("word", size.vocabulary, count))
    return replace(graph, sequence=sequence)


def bert_labels(name: str, size: BertSize, labels: int, sequence: int) -> Graph:
    """Fine-tuning with so many scores for each token: 2 bound an answer, 3 name an entity."""
    net = NetworkBuilder(name)
    x = net.dropout("dropout", _encoder(net, size), _DROPOUT)
    scores = net.linear("labels", x, labels)
    loss = net.cross_entropy("loss", scores, net.integers("label", labels, "sequence"))
    return net.build(loss, sequence, size.dimensions)


def _pretrained(
    net: NetworkBuilder, size: BertSize, encoded: str, scored: str, targets: str
) -> Graph:
    """The two heads of pre-training: words at the ``scored`` positions, next sentence."""
    with net.scope("masked_words"):
        y = net.activation("gelu", net.linear("transform", scored, size.hidden), "gelu")
        y = net.layer_norm("norm", y)
        words = net.linear("scores", y, size.vocabulary, shares="embedding.words")
    with net.scope("next_sentence"):
        first = net.flatten("first_only", net.part("first", encoded, 0, 0, 1))
        pooled = net.activation("tanh", net.linear("pool", first, size.hidden), "tanh")
        order = net.linear("scores", pooled, 2)
    word_loss = net.cross_entropy("word_loss", words, targets)
    order_loss = net.cross_entropy("order_loss", order, net.integers("order", 2))
    loss = net.add_node("loss", ops.WeightedSum((1.0, 1.0)), word_loss, order_loss)
    return net.build(loss, size.positions, size.dimensions)


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
