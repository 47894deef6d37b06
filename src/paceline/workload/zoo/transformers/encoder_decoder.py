"""Encoder-decoders of text and speech, and image classifiers."""

from paceline.workload import ops
from paceline.workload.graph import Graph
from paceline.workload.zoo.network_builder import NetworkBuilder
from paceline.workload.zoo.transformers.shape import TransformerShape
from paceline.workload.zoo.transformers.stack import embedding, stack

_TABLE = "embedding"


def encoder_decoder(name: str, encoder: TransformerShape, decoder: TransformerShape) -> Graph:
    """Build an encoder-decoder whose source and target share length and embedding (T5, BART)."""
    net = NetworkBuilder(name)
    memory = stack(net, embedding(net, encoder, "source"), encoder, "encoder")
    x = embedding(net, decoder, prefix="decoder.", shares=_TABLE)
    return _with_head(net, stack(net, x, decoder, "decoder", memory), encoder, decoder)


def speech_recogniser(
    name: str, encoder: TransformerShape, decoder: TransformerShape, bands: int
) -> Graph:
    """Build convolutions over a spectrogram of ``bands``, an encoder and a text decoder (Whisper).

    The encoder's positions are sinusoids, which are not trained; the second convolution has
    stride 2, so the spectrogram has two frames per position.
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
    x = embedding(net, decoder)
    return _with_head(net, stack(net, x, decoder, "decoder", memory), encoder, decoder)


def _with_head(
    net: NetworkBuilder, x: str, encoder: TransformerShape, decoder: TransformerShape
) -> Graph:
    shares = _TABLE if decoder.tied else None
    scores = net.linear("head", x, decoder.vocabulary, bias=False, shares=shares)
    word = net.integers("word", decoder.vocabulary, "sequence")
    dimensions = decoder.dimensions() | {"layers": encoder.layers + decoder.layers}
    return net.build(net.cross_entropy("loss", scores, word), decoder.sequence, dimensions)


def image_classifier(
    name: str, shape: TransformerShape, side: int, patch: int, channels: int = 3
) -> Graph:
    """Build a classifier of a class token and the patches of a square image (ViT)."""
    net = NetworkBuilder(name)
    x = net.conv("patches", net.image(channels, side, side), shape.hidden, patch, patch, bias=True)
    x = net.transpose("tokens", net.flatten("flatten", x, 1), 1, 0)
    x = net.add_node("class_token", ops.ClassToken(), x)
    x = net.add_node("positions", ops.PositionEmbedding((side // patch) ** 2 + 1), x)
    x = stack(net, x, shape)
    x = net.flatten("class_only", net.part("class_position", x, 0, 0, 1))
    return net.classifier_loss(net.linear("head", x, shape.labels), classes=shape.labels)
