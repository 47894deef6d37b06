"""State-space models, and hybrids with attention."""

from collections.abc import Callable
from dataclasses import replace

from paceline.errors import InputError
from paceline.workload.capture.hugging_face import decoders, sparse
from paceline.workload.capture.hugging_face.fields import OTHERS, Config, sequence_of
from paceline.workload.zoo.transformers import (
    Experts,
    LayerKind,
    LinearAttention,
    StateSpace,
    TransformerShape,
)

_NUMBERS_PER_STEP = 16
"""Width divided by the rank of the step sizes, if the rank is ``auto`` (Gu and Dao 2023)."""


def mamba(config: Config) -> TransformerShape:
    shape = _alone(config, tied=True)
    space = StateSpace(
        inner=config.size("intermediate_size", default=_expanded(config, shape.hidden)),
        state=config.size("state_size"),
        kernel=config.size("conv_kernel", default=4),
        conv_bias=config.flag("use_conv_bias", True),
        bias=config.flag("use_bias", False),
        step_rank=_rank(config, "time_step_rank", shape.hidden),
    )
    return shape.replaced(state_space=space)


def mamba2(config: Config) -> TransformerShape:
    shape = _alone(config, tied=False)
    space = StateSpace(
        inner=_expanded(config, shape.hidden),
        state=config.size("state_size"),
        kernel=config.size("conv_kernel", default=4),
        conv_bias=config.flag("use_conv_bias", True),
        bias=config.flag("use_bias", False),
        heads=config.size("num_heads"),
        groups=config.size("n_groups", default=8),
        chunk=config.size("chunk_size", default=256),
    )
    return shape.replaced(state_space=space)


def _alone(config: Config, tied: bool) -> TransformerShape:
    layers = config.size("num_hidden_layers", "n_layer")
    return TransformerShape(
        hidden=config.size("hidden_size", "d_model"),
        layers=layers,
        vocabulary=config.size("vocab_size"),
        sequence=sequence_of(config),
        head=config.head("tokens"),
        norm="rms",
        tied=config.flag("tie_word_embeddings", tied),
        kinds=(LayerKind(("state_space",), "none"),) * layers,
    )


def jamba(config: Config) -> TransformerShape:
    """Jamba: attention instead of Mamba in some layers, experts in some feed-forwards."""
    shape = decoders.llama(config).replaced(rotary=False)
    period = config.size("attn_layer_period", default=8)
    offset = config.size("attn_layer_offset", default=4, least=0)
    every = config.size("expert_layer_period", default=2)
    start = config.size("expert_layer_offset", default=1, least=0)
    experts = Experts(config.size("num_experts"), config.size("num_experts_per_tok"), shape.inner)
    space = StateSpace(
        inner=config.size("mamba_expand", default=2) * shape.hidden,
        state=config.size("mamba_d_state", default=16),
        kernel=config.size("mamba_d_conv", default=4),
        conv_bias=config.flag("mamba_conv_bias", True),
        bias=config.flag("mamba_proj_bias", False),
        step_rank=_rank(config, "mamba_dt_rank", shape.hidden),
        inner_norms=True,
    )
    kinds = tuple(
        LayerKind(("attention",) if layer % period == offset else ("state_space",))
        for layer in range(shape.layers)
    )
    return sparse.with_experts(
        shape.replaced(state_space=space, kinds=kinds),
        experts,
        lambda layer: experts.count > 1 and layer % every == start,
    )


def falcon_h1(config: Config) -> TransformerShape:
    """Falcon-H1: attention and Mamba-2 in parallel in every layer."""
    shape = decoders.llama(config)
    bias = config.flag("mamba_proj_bias", False)
    if bias != config.flag("projectors_bias", False):
        raise InputError("mamba_proj_bias and projectors_bias must be equal", OTHERS)
    space = StateSpace(
        inner=config.size(
            "mamba_d_ssm", default=config.size("mamba_expand", default=2) * shape.hidden
        ),
        state=config.size("mamba_d_state"),
        kernel=config.size("mamba_d_conv", default=4),
        conv_bias=config.flag("mamba_conv_bias", True),
        bias=bias,
        heads=config.size("mamba_n_heads"),
        groups=config.size("mamba_n_groups", default=1),
        chunk=config.size("mamba_chunk_size", default=256),
        gated_norm=config.flag("mamba_rms_norm", False),
    )
    kinds = (LayerKind(("attention", "state_space")),) * shape.layers
    return shape.replaced(state_space=space, kinds=kinds)


def granitemoehybrid(config: Config) -> TransformerShape:
    """Granite 4: Mamba-2 in most layers, attention in the others, routed and shared experts."""
    shape = decoders.llama(config)
    types = config.layer_types("layer_types", shape.layers)
    types = types or config.layer_types("layers_block_type", shape.layers)
    kinds = tuple(
        LayerKind(("attention",) if kind == "attention" else ("state_space",)) for kind in types
    )
    space = StateSpace(
        inner=config.size("mamba_expand", default=2) * shape.hidden,
        state=config.size("mamba_d_state", default=256),
        kernel=config.size("mamba_d_conv", default=4),
        conv_bias=config.flag("mamba_conv_bias", True),
        bias=config.flag("mamba_proj_bias", False),
        heads=config.size("mamba_n_heads", default=128),
        groups=config.size("mamba_n_groups", default=1),
        chunk=config.size("mamba_chunk_size", default=256),
    )
    shared = config.size("shared_intermediate_size", default=1024)
    count = config.size("num_local_experts", default=8, least=0)
    inner = shape.inner if count else shared  # without experts the shared one is the feed-forward
    has_positions = config.is_text("position_embedding_type", "rope")
    shape = shape.replaced(state_space=space, kinds=kinds, rotary=has_positions, inner=inner)
    if not count:
        return shape
    each = config.size("num_experts_per_tok", default=2)
    return sparse.with_experts(shape, Experts(count, each, shape.inner, shared_inner=shared))


def qwen3_next(config: Config) -> TransformerShape:
    """Qwen3-Next: the gated delta rule in three of four layers, gated attention in the others."""
    shape = sparse.qwen3_moe(config).replaced(attention_gate=True)
    width = config.size("shared_expert_intermediate_size", default=512)
    assert shape.experts is not None
    experts = replace(shape.experts, shared_inner=width, shared_gate=True)
    linear = LinearAttention(
        heads=config.size("linear_num_value_heads", default=32),
        groups=config.size("linear_num_key_heads", default=16),
        key_dim=config.size("linear_key_head_dim", default=128),
        value_dim=config.size("linear_value_head_dim", default=128),
        kernel=config.size("linear_conv_kernel_dim", default=4),
        chunk=64,
    )
    every = config.size("full_attention_interval", default=4)
    shape = _with_linear(config, shape, linear, lambda layer: (layer + 1) % every > 0)
    return shape.replaced(experts=experts)


def minimax(config: Config) -> TransformerShape:
    """MiniMax-01: lightning attention in all layers but some, experts in all."""
    shape = sparse.mixtral(config)
    linear = LinearAttention(
        shape.heads,
        shape.heads,
        shape.head_dim,
        shape.head_dim,
        chunk=config.size("block_size", default=256),
    )
    return _with_linear(config, shape, linear, lambda layer: layer % 2 == 1)


def _with_linear(
    config: Config,
    shape: TransformerShape,
    linear: LinearAttention,
    is_linear: Callable[[int], bool],
) -> TransformerShape:
    """Replace attention in the layers that the configuration lists, or else in ``is_linear``."""
    config.notes.append("linear attention is modelled as the chunked scan of Mamba-2")
    types = config.layer_types("layer_types", shape.layers)
    kinds = tuple(
        replace(shape.layer(layer), mixers=("linear",) if linear_here else ("attention",))
        for layer in range(shape.layers)
        for linear_here in [types[layer] == "linear_attention" if types else is_linear(layer)]
    )
    return shape.replaced(linear=linear, kinds=kinds)


def nemotron_h(config: Config) -> TransformerShape:
    """Nemotron-H: every layer is Mamba-2, attention or feed-forward, after a norm."""
    shape = decoders.llama(config).replaced(
        rotary=False,
        gated=False,
        query_bias=False,
        out_bias=False,
        activation=config.activation("mlp_hidden_act", default="relu2"),
    )
    types = config.layer_types("hybrid_override_pattern", shape.layers)
    types = types or config.layer_types("layers_block_type", shape.layers)
    predicted = config.size("num_nextn_predict_layers", default=0, least=0)
    pattern = config.text("mtp_hybrid_override_pattern", "") if predicted else ""
    if not types:
        raise InputError("Nemotron-H needs hybrid_override_pattern", OTHERS)
    if unknown := sorted({*types, *pattern} - set(_LAYERS_OF_NEMOTRON)):
        raise InputError(f"unknown layer types of Nemotron-H: {', '.join(unknown)}", OTHERS)
    kinds = tuple(_LAYERS_OF_NEMOTRON[kind] for kind in types)
    space = StateSpace(
        inner=config.size("mamba_num_heads") * config.size("mamba_head_dim"),
        state=config.size("ssm_state_size"),
        kernel=config.size("conv_kernel", default=4),
        conv_bias=config.flag("use_conv_bias", True),
        bias=config.flag("use_bias", False),
        heads=config.size("mamba_num_heads"),
        groups=config.size("n_groups", default=8),
        chunk=config.size("chunk_size", default=128),
    )
    experts = None
    if any(kind.feed_forward == "experts" for kind in kinds):
        experts = Experts(
            config.size("n_routed_experts"),
            config.size("num_experts_per_tok"),
            config.size("moe_intermediate_size"),
            shared_inner=config.size("moe_shared_expert_intermediate_size"),
            latent=config.size("moe_latent_size", default=0, least=0),
        )
    further = tuple(_LAYERS_OF_NEMOTRON[kind] for kind in pattern)
    return shape.replaced(state_space=space, kinds=kinds, experts=experts, further_kinds=further)


_MAMBA, _ATTENTION = LayerKind(("state_space",), "none"), LayerKind(("attention",), "none")
_DENSE, _EXPERTS = LayerKind((), "dense"), LayerKind((), "experts")
_LAYERS_OF_NEMOTRON = {
    "M": _MAMBA,
    "*": _ATTENTION,
    "-": _DENSE,
    "E": _EXPERTS,
    "mamba": _MAMBA,
    "attention": _ATTENTION,
    "mlp": _DENSE,
    "moe": _EXPERTS,
}


def _expanded(config: Config, hidden: int) -> int:
    return config.size("expand", default=2) * hidden


def _rank(config: Config, name: str, hidden: int) -> int:
    automatic = -(-hidden // _NUMBERS_PER_STEP)
    return automatic if config.is_text(name, "auto") else config.size(name, default=automatic)
