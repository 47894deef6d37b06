"""Llama and the decoders after it."""

from collections.abc import Callable
from dataclasses import replace

from paceline.workload.capture.hugging_face.fields import Config, common_sizes
from paceline.workload.zoo.transformers import TransformerShape

WITHOUT_IMAGES = "only the text model is included; the image encoder is left out"


def llama(config: Config) -> TransformerShape:
    """Llama 1 to 3 and models of the same form, such as Granite and Phi-3."""
    bias = config.flag("attention_bias", False)
    return TransformerShape(
        **common_sizes(config),
        inner=config.size("intermediate_size"),
        rotary=True,
        norm="rms",
        activation=config.activation("hidden_act", default="silu"),
        gated=True,
        query_bias=bias,
        out_bias=bias,
        mlp_bias=config.flag("mlp_bias", False),
        tied=config.flag("tie_word_embeddings", False),
    )


def windowed(
    config: Config, shape: TransformerShape, has_window: Callable[[int], bool] = lambda _: True
) -> TransformerShape:
    """Add sliding-window attention to the layers that have it.

    ``has_window`` selects them unless the configuration lists the type of every layer.
    """
    width = config.size("sliding_window", default=0, least=0)
    if not width:
        return shape
    types = config.layer_types("layer_types", shape.layers)
    kinds = tuple(
        replace(shape.layer(layer), window=width if windowed else 0)
        for layer in range(shape.layers)
        for windowed in [types[layer] == "sliding_attention" if types else has_window(layer)]
    )
    return shape.replaced(kinds=kinds)


def mistral(config: Config) -> TransformerShape:
    """Mistral and Phi-3: Llama, with a sliding window in every layer if one is given."""
    return windowed(config, llama(config))


def qwen2(config: Config) -> TransformerShape:
    bias = config.flag("qkv_bias", True)
    return _with_upper_windows(config, llama(config).replaced(query_bias=bias, out_bias=False))


def qwen3(config: Config) -> TransformerShape:
    return _with_upper_windows(config, llama(config).replaced(norm_of_heads="head"))


def _with_upper_windows(config: Config, shape: TransformerShape) -> TransformerShape:
    if not config.flag("use_sliding_window", False):
        return shape
    first = config.size("max_window_layers", default=0, least=0)
    return windowed(config, shape, lambda layer: layer >= first)


def smollm3(config: Config) -> TransformerShape:
    """SmolLM3; the layers without rotary positions are built with them."""
    return llama(config).replaced(tied=config.flag("tie_word_embeddings", True))


def gemma(config: Config) -> TransformerShape:
    activation = config.activation("hidden_activation", "hidden_act", default="gelu_pytorch_tanh")
    tied = config.flag("tie_word_embeddings", True)
    return llama(config).replaced(activation=activation, tied=tied)


def gemma2(config: Config) -> TransformerShape:
    """Gemma 2: sliding window in every other layer."""
    size = config.size("head_dim", default=256)
    shape = gemma(config).replaced(head_dim=size, norm_at="both")
    return windowed(config, shape, lambda layer: layer % 2 == 0)


def gemma3(config: Config) -> TransformerShape:
    """Gemma 3: sliding window in all layers but every sixth."""
    shape = gemma2(config).replaced(norm_of_heads="head")
    return windowed(config, shape, _all_but_every(config, 6))


def gemma3_with_images(config: Config) -> TransformerShape:
    config.notes.append(WITHOUT_IMAGES)
    return gemma3(config.part("text_config"))


def cohere(config: Config) -> TransformerShape:
    """Command R: attention and feed-forward in parallel after one norm."""
    return llama(config).replaced(
        norm="layer",
        norm_bias=False,
        parallel="one_norm",
        norm_of_heads="whole" if config.flag("use_qk_norm", False) else "no",
        tied=config.flag("tie_word_embeddings", True),
    )


def cohere2(config: Config) -> TransformerShape:
    """Command R7B and A: sliding window in all layers but every fourth."""
    return windowed(config, cohere(config), _all_but_every(config, 4))


def _all_but_every(config: Config, usual: int) -> Callable[[int], bool]:
    step = config.size("sliding_window_pattern", "_sliding_window_pattern", default=usual)
    return lambda layer: (layer + 1) % step != 0


def nemotron(config: Config) -> TransformerShape:
    """Nemotron-4 and Minitron: no gate, squared ReLU."""
    return llama(config).replaced(
        norm="layer",
        activation=config.activation("hidden_act", default="relu2"),
        gated=False,
    )


def glm(config: Config) -> TransformerShape:
    bias = config.flag("attention_bias", True)
    return llama(config).replaced(query_bias=bias, out_bias=False)


def glm4(config: Config) -> TransformerShape:
    """GLM-4 of 2025: norms on both sides."""
    return glm(config).replaced(norm_at="both")


def olmo2(config: Config) -> TransformerShape:
    """OLMo 2: norms after attention and feed-forward, and of whole queries and keys."""
    return llama(config).replaced(norm_at="after", norm_of_heads="whole")


def olmo3(config: Config) -> TransformerShape:
    """OLMo 3: sliding window in all layers but every fourth."""
    return windowed(config, olmo2(config), _all_but_every(config, 4))


def seed_oss(config: Config) -> TransformerShape:
    out_bias = config.flag("attention_out_bias", False)
    return llama(config).replaced(query_bias=config.flag("attention_bias", True), out_bias=out_bias)


def starcoder2(config: Config) -> TransformerShape:
    """StarCoder 2: biases and layer norms, no gate."""
    bias = config.flag("use_bias", True)
    shape = llama(config).replaced(
        norm="layer",
        activation=config.activation("hidden_act", default="gelu_pytorch_tanh"),
        gated=False,
        query_bias=bias,
        out_bias=bias,
        mlp_bias=bias,
        tied=config.flag("tie_word_embeddings", True),
    )
    return windowed(config, shape)
