"""Stable Diffusion v2 (Rombach et al. 2022): a U-Net trained with frozen encoders.

The text encoder is OpenCLIP's ViT-H/14 up to its last but one layer, the image encoder that of
the variational autoencoder; both only run forward. Training does not use the decoder.
"""

from paceline.workload import ops
from paceline.workload.graph import Graph
from paceline.workload.zoo.network_builder import NetworkBuilder
from paceline.workload.zoo.transformers import TransformerShape, stack
from paceline.workload.zoo.transformers.transformer_layers import attention

_SIDE, _LATENT_CHANNELS = 512, 4
_VOCABULARY, _TEXT_LENGTH, _TEXT_WIDTH, _TEXT_LAYERS = 49_408, 77, 1024, 23
# Channels of the first level, their multiples by level, and channels per head of attention.
_WIDTH = 320
_TIME_WIDTH = 4 * _WIDTH
_MULTIPLES = (1, 2, 4, 4)
_HEAD = 64
_GROUPS = 32


def stable_diffusion_v2(stored_latents: bool = False) -> Graph:
    """Images of 512 x 512: 865,910,724 trained and 374,551,504 frozen parameters.

    With ``stored_latents`` the input is what the image encoder gave before training.
    """
    net = NetworkBuilder("stable_diffusion_v2" + "_latents" * stored_latents)
    side = _SIDE // 8
    with net.frozen():
        text = _text_encoder(net)
        if stored_latents:
            latent = net.image(_LATENT_CHANNELS, side, side, name="latents")
        else:
            latent = _image_encoder(net)
    noise = net.image(_LATENT_CHANNELS, side, side, name="noise")
    predicted = _unet(net, net.add("noised", latent, noise), text)
    return net.build(net.elementwise_loss("loss", "squared_error", predicted, noise))


def _text_encoder(net: NetworkBuilder) -> str:
    tokens = net.integers("words", _VOCABULARY, _TEXT_LENGTH)
    with net.scope("text"):
        x = net.embedding("embedding", tokens, _VOCABULARY, _TEXT_WIDTH)
        x = net.add_node("positions", ops.PositionEmbedding(_TEXT_LENGTH), x)
        shape = TransformerShape.multi_head(_TEXT_WIDTH, _TEXT_LAYERS, 16, joint_projection=True)
        return stack(net, x, shape)


def _image_encoder(net: NetworkBuilder) -> str:
    """The mean of the latent: four channels of an eighth of the image's side."""
    with net.scope("encoder"):
        x, width = net.conv("first", net.image(3, _SIDE, _SIDE), 128, 3, 1, 1, bias=True), 128
        for level, multiple in enumerate(_MULTIPLES):
            for block in range(2):
                with net.scope(f"level{level}.{block}"):
                    x, width = _residual(net, x, width, 128 * multiple), 128 * multiple
            if level < 3:
                x = net.conv(f"level{level}.down", x, width, 3, 2, 1, bias=True)
        with net.scope("middle"):
            with net.scope("0"):
                x = _residual(net, x, width, width)
            x = _image_attention(net, x, width)
            with net.scope("1"):
                x = _residual(net, x, width, width)
        x = _activated(net, "last", x)
        x = net.conv("moments", x, 2 * _LATENT_CHANNELS, 3, 1, 1, bias=True)
        x = net.conv("quantised", x, 2 * _LATENT_CHANNELS, 1, bias=True)
        return net.part("mean", x, 0, 0, _LATENT_CHANNELS)


def _image_attention(net: NetworkBuilder, x: str, width: int) -> str:
    shape = TransformerShape.multi_head(width, 1, 1, causal=False)
    with net.scope("attention_block"):
        y = _tokens(net, net.add_node("norm", ops.GroupNorm(_GROUPS), x), width)
        y = attention(net, y, shape)
        return net.add("add", x, _image(net, y, width, _SIDE // 8))


def _unet(net: NetworkBuilder, latent: str, text: str) -> str:
    time = net.image(_WIDTH, name="time")
    with net.scope("unet"):
        time = net.activation("time.silu", net.linear("time.fc1", time, _TIME_WIDTH), "silu")
        time = net.activation("time.silu2", net.linear("time.fc2", time, _TIME_WIDTH), "silu")
        x, width, side = net.conv("first", latent, _WIDTH, 3, 1, 1, bias=True), _WIDTH, _SIDE // 8
        kept = [(x, width)]
        for level, multiple in enumerate(_MULTIPLES):
            out = _WIDTH * multiple
            for block in range(2):
                with net.scope(f"down{level}.{block}"):
                    x, width = _residual(net, x, width, out, time), out
                    if level < 3:
                        x = _transformer(net, x, text, width, side)
                kept.append((x, width))
            if level < 3:
                x, side = net.conv(f"down{level}.down", x, width, 3, 2, 1, bias=True), side // 2
                kept.append((x, width))
        with net.scope("middle.0"):
            x = _transformer(net, _residual(net, x, width, width, time), text, width, side)
        with net.scope("middle.1"):
            x = _residual(net, x, width, width, time)
        for level in (3, 2, 1, 0):
            out = _WIDTH * _MULTIPLES[level]
            for block in range(3):
                with net.scope(f"up{level}.{block}"):
                    skip, skip_width = kept.pop()
                    x = net.concat("join", (x, skip))
                    x, width = _residual(net, x, width + skip_width, out, time), out
                    if level < 3:
                        x = _transformer(net, x, text, width, side)
            if level:
                x, side = net.add_node(f"up{level}.repeat", ops.Upsample(), x), side * 2
                x = net.conv(f"up{level}.up", x, width, 3, 1, 1, bias=True)
        x = _activated(net, "last", x)
        return net.conv("noise", x, _LATENT_CHANNELS, 3, 1, 1, bias=True)


def _residual(net: NetworkBuilder, x: str, width: int, out: int, time: str | None = None) -> str:
    """Two convolutions after their norms; the time embedding is added between them."""
    y = net.conv("conv1", _activated(net, "1", x), out, 3, 1, 1, bias=True)
    if time is not None:
        y = net.add_node("with_time", ops.AddPerChannel(), y, net.linear("time", time, out))
    y = net.conv("conv2", _activated(net, "2", y), out, 3, 1, 1, bias=True)
    if width != out:
        x = net.conv("shortcut", x, out, 1, bias=True)
    return net.add("sum", x, y)


def _activated(net: NetworkBuilder, number: str, x: str) -> str:
    x = net.add_node(f"norm{number}", ops.GroupNorm(_GROUPS), x)
    return net.activation(f"silu{number}", x, "silu")


def _transformer(net: NetworkBuilder, x: str, text: str, width: int, side: int) -> str:
    """Self-attention, cross-attention to the text, and a gated feed-forward."""
    shape = TransformerShape.multi_head(width, 1, width // _HEAD, causal=False, query_bias=False)
    with net.scope("transformer"):
        y = _tokens(net, net.add_node("norm", ops.GroupNorm(_GROUPS), x), width)
        y = net.linear("in", y, width)
        for number, memory in enumerate((None, text), start=1):
            z = attention(net, net.layer_norm(f"norm{number}", y), shape, memory=memory)
            y = net.add(f"add{number}", y, z)
        y = net.add("add3", y, _gated(net, net.layer_norm("norm3", y), width))
        return net.add("add", x, _image(net, net.linear("out", y, width), width, side))


def _gated(net: NetworkBuilder, x: str, width: int) -> str:
    """GEGLU (Shazeer 2020) with one joint projection, unlike the builder's two."""
    inner = 4 * width
    both = net.linear("mlp.up", x, 2 * inner)
    gate = net.activation("mlp.gelu", net.part("mlp.gate", both, 1, inner, 2 * inner), "gelu")
    values = net.multiply("mlp.product", net.part("mlp.values", both, 1, 0, inner), gate)
    return net.linear("mlp.down", values, width)


def _tokens(net: NetworkBuilder, x: str, width: int) -> str:
    return net.transpose("tokens", net.reshape("positions", x, width, -1), 1, 0)


def _image(net: NetworkBuilder, x: str, width: int, side: int) -> str:
    return net.reshape("image", net.transpose("channels", x, 1, 0), width, side, side)
