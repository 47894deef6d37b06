"""Encoders of text (BERT), images (ViT) and sound, and encoder-decoders (T5, Whisper)."""

from collections.abc import Callable
from functools import partial

from paceline.errors import InputError
from paceline.workload.capture.hugging_face.fields import (
    ACTIVATIONS,
    HEADS,
    OTHERS,
    Config,
    common_sizes,
    position_rows,
    sequence_of,
)
from paceline.workload.graph import Graph
from paceline.workload.zoo.transformers import TransformerShape
from paceline.workload.zoo.transformers.encoder_decoder import (
    encoder_decoder,
    image_classifier,
    speech_recogniser,
)
from paceline.workload.zoo.transformers.two_towers import two_towers


def t5(config: Config) -> Callable[[str], Graph]:
    """T5: relative positions, no biases."""
    _require_head(config, "tokens")
    gate, _, activation = config.text("feed_forward_proj", "relu").rpartition("-")
    if activation not in ACTIVATIONS or gate not in ("", "gated"):
        raise InputError(
            f"unsupported feed_forward_proj of T5: {config.text('feed_forward_proj', '')}", OTHERS
        )
    encoder = TransformerShape(
        hidden=config.size("d_model"),
        layers=config.size("num_layers"),
        vocabulary=config.size("vocab_size"),
        sequence=sequence_of(config),
        heads=config.size("num_heads"),
        kv_heads=config.size("num_heads"),
        head_dim=config.size("d_kv"),
        inner=config.size("d_ff"),
        relative_buckets=config.size("relative_attention_num_buckets", default=32),
        norm="rms",
        activation="gelu_tanh" if activation == "gelu" else ACTIVATIONS[activation],
        gated=bool(gate),
        causal=False,
        query_bias=False,
        out_bias=False,
        mlp_bias=False,
        tied=config.flag("tie_word_embeddings", True),
    )
    layers = config.size("num_decoder_layers", default=encoder.layers)
    decoder = encoder.replaced(layers=layers, causal=True)
    return partial(encoder_decoder, encoder=encoder, decoder=decoder)


def whisper(config: Config) -> Callable[[str], Graph]:
    """Whisper: convolutions over a spectrogram, then an encoder and a decoder."""
    _require_head(config, "tokens")
    positions = config.size("max_target_positions", default=448)
    hidden, heads = config.size("d_model"), config.size("encoder_attention_heads")
    encoder = TransformerShape(
        hidden=hidden,
        layers=config.size("encoder_layers"),
        heads=heads,
        kv_heads=heads,
        head_dim=max(1, hidden // heads),
        inner=config.size("encoder_ffn_dim"),
        activation=config.activation("activation_function", default="gelu"),
        causal=False,
        key_bias=False,
        learned_positions=config.size("max_source_positions", default=1500),
    )
    heads = config.size("decoder_attention_heads")
    decoder = encoder.replaced(
        layers=config.size("decoder_layers"),
        vocabulary=config.size("vocab_size"),
        sequence=positions,
        heads=heads,
        kv_heads=heads,
        head_dim=max(1, hidden // heads),
        inner=config.size("decoder_ffn_dim"),
        causal=True,
        learned_positions=positions,
        tied=config.flag("tie_word_embeddings", True),
    )
    bands = config.size("num_mel_bins", default=80)
    return partial(speech_recogniser, encoder=encoder, decoder=decoder, bands=bands)


def vit(config: Config) -> Callable[[str], Graph]:
    hidden, heads = config.size("hidden_size"), config.size("num_attention_heads")
    shape = TransformerShape(
        hidden=hidden,
        layers=config.size("num_hidden_layers"),
        heads=heads,
        kv_heads=heads,
        head_dim=max(1, hidden // heads),
        inner=config.size("intermediate_size"),
        activation=config.activation("hidden_act", default="gelu"),
        causal=False,
        query_bias=config.flag("qkv_bias", True),
        labels=config.labels(),
    )
    _require_head(config, "classes")
    side, patch = config.size("image_size", default=224), config.size("patch_size", default=16)
    if side < patch:
        raise InputError(f"image_size {side} is smaller than patch_size {patch}")
    channels = config.size("num_channels", default=3)
    return partial(image_classifier, shape=shape, side=side, patch=patch, channels=channels)


def _require_head(config: Config, wanted: str) -> None:
    if config.head(wanted) != wanted:
        known = ", ".join(f"...{suffix}" for suffix, head in HEADS.items() if head == wanted)
        raise InputError(f"this model_type is supported only as {known}", OTHERS)


def bert(config: Config) -> TransformerShape:
    common = common_sizes(config)
    head = config.head("masked")
    is_decoder = head == "tokens"  # the language model of a decoder has the head of the masked one
    return TransformerShape(
        **common | {"head": "masked" if is_decoder else head},
        inner=config.size("intermediate_size", "hidden_dim"),
        learned_positions=position_rows(config, common),
        segments=config.size("type_vocab_size", default=2),
        activation=config.activation("hidden_act", "activation", default="gelu"),
        causal=is_decoder,
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


def modernbert(config: Config) -> TransformerShape:
    """ModernBERT: rotary positions, gated feed-forwards, windows in two of three layers."""
    common = common_sizes(config)
    bias = config.flag("attention_bias", False)
    shape = TransformerShape(
        **common | {"head": config.head("masked")},
        inner=config.size("intermediate_size"),
        rotary=True,
        norm_bias=config.flag("norm_bias", False),
        first_norm=False,
        activation=config.activation("hidden_activation", default="gelu"),
        gated=True,
        causal=False,
        query_bias=bias,
        out_bias=bias,
        mlp_bias=config.flag("mlp_bias", False),
        embedding_norm=True,
        tied=config.flag("tie_word_embeddings", True),
        head_bias=config.flag("decoder_bias", True),
    )
    config.notes.append("windows of bidirectional attention are modelled as full attention")
    return shape


def clip(config: Config) -> Callable[[str], Graph]:
    """CLIP: causal text, images with a class token."""
    return _two_towers(config, causal=True, activation="quick_gelu")


def siglip(config: Config) -> Callable[[str], Graph]:
    return _two_towers(config, causal=False, activation="gelu_pytorch_tanh")


def _two_towers(config: Config, causal: bool, activation: str) -> Callable[[str], Graph]:
    text, image = config.part("text_config"), config.part("vision_config")
    config.notes.append("the similarities of a batch and their scale are left out")
    written, pictured = (
        TransformerShape(
            hidden=tower.size("hidden_size", default=default),
            layers=tower.size("num_hidden_layers", default=12),
            heads=(heads := tower.size("num_attention_heads", default=default // 64)),
            kv_heads=heads,
            head_dim=max(1, tower.size("hidden_size", default=default) // heads),
            inner=tower.size("intermediate_size", default=4 * default),
            activation=tower.activation("hidden_act", default=activation),
            causal=causal and tower is text,
        )
        for tower, default in ((text, 512 if causal else 768), (image, 768))
    )
    positions = text.size("max_position_embeddings", default=77 if causal else 64)
    written = written.replaced(
        vocabulary=text.size("vocab_size", default=49408 if causal else 32000),
        sequence=positions,
        learned_positions=positions,
    )
    projected = text.size("projection_size", default=written.hidden)
    return partial(
        two_towers,
        text=written,
        image=pictured,
        side=image.size("image_size", default=224),
        patch=image.size("patch_size", default=32 if causal else 16),
        width=config.size("projection_dim", default=512) if causal else projected,
    )
