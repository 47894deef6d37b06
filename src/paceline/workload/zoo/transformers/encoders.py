"""Encoders, alone over images, or before a decoder over text or sound."""

from paceline.workload import ops
from paceline.workload.graph import Graph
from paceline.workload.zoo.builder import NetworkBuilder
from paceline.workload.zoo.transformers.shape import TransformerShape
from paceline.workload.zoo.transformers.stack import stack

_WORDS = "embedding"


def encoder_decoder(name: str, encoder: TransformerShape, decoder: TransformerShape) -> Graph:
    """Source and target of one length and one table of words (T5)."""
    net = NetworkBuilder(name)
    source = net.integers("source", encoder.vocabulary, "sequence")
    x = net.embedding(_WORDS, source, encoder.vocabulary, encoder.hidden)
    memory = stack(net, x, encoder, "encoder")
    tokens = net.integers("tokens", decoder.vocabulary, "sequence")
    table = ops.Embedding(decoder.vocabulary, decoder.hidden)
    x = net.add_node("decoder.embedding", table, tokens, shares=_WORDS)
    return _with_words(net, stack(net, x, decoder, "decoder", memory), encoder, decoder)


def speech_recogniser(
    name: str, encoder: TransformerShape, decoder: TransformerShape, bands: int
) -> Graph:
    """Two filters over ``bands`` of a spectrogram, an encoder, a decoder of words (Whisper).

    The encoder's positions are not trained; the spectrogram has two frames for each.
    """
    net = NetworkBuilder(name)
    x = net.sound(bands, 2 * encoder.learned_positions)
    for number, stride in ((1, 1), (2, 2)):
        x = net.conv(f"conv{number}", x, encoder.hidden, 3, stride, 1, bias=True, dimensions=1)
        x = net.activation(f"conv{number}_activation", x, "gelu")
    x = net.transpose("frames", x, 1, 0)
    with net.frozen():
        x = net.add_node("frame_positions", ops.PositionEmbedding(encoder.learned_positions), x)
    memory = stack(net, x, encoder, "encoder")
    tokens = net.integers("tokens", decoder.vocabulary, "sequence")
    x = net.embedding(_WORDS, tokens, decoder.vocabulary, decoder.hidden)
    x = net.add_node("positions", ops.PositionEmbedding(decoder.learned_positions), x)
    return _with_words(net, stack(net, x, decoder, "decoder", memory), encoder, decoder)


def _with_words(
    net: NetworkBuilder, x: str, encoder: TransformerShape, decoder: TransformerShape
) -> Graph:
    shares = _WORDS if decoder.tied else None
    scores = net.linear("head", x, decoder.vocabulary, bias=False, shares=shares)
    word = net.integers("word", decoder.vocabulary, "sequence")
    dimensions = decoder.dimensions() | {"layers": encoder.layers + decoder.layers}
    return net.build(net.cross_entropy("loss", scores, word), decoder.sequence, dimensions)


def image_classifier(
    name: str, shape: TransformerShape, side: int, patch: int, channels: int = 3
) -> Graph:
    """Patches of a square image as tokens, with one more whose features are classified (ViT)."""
    net = NetworkBuilder(name)
    x = net.conv("patches", net.image(channels, side, side), shape.hidden, patch, patch, bias=True)
    x = net.transpose("tokens", net.flatten("flatten", x, 1), 1, 0)
    x = net.add_node("class_token", ops.ClassToken(), x)
    x = net.add_node("positions", ops.PositionEmbedding((side // patch) ** 2 + 1), x)
    x = stack(net, x, shape)
    x = net.flatten("class_only", net.part("class_position", x, 0, 0, 1))
    return net.classifier_loss(net.linear("head", x, shape.labels), classes=shape.labels)
