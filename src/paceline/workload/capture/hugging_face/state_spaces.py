"""State-space models, and hybrids with attention."""

from paceline.errors import InputError
from paceline.workload.capture.hugging_face import decoders, sparse
from paceline.workload.capture.hugging_face.common import sequence_of
from paceline.workload.capture.hugging_face.fields import OTHERS, Config
from paceline.workload.zoo.transformers import Experts, LayerKind, StateSpace, TransformerShape

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


def nemotron_h(config: Config) -> TransformerShape:
    """Nemotron-H: every layer is Mamba-2, attention or feed-forward, after a norm."""
    if config.given("moe_latent_size"):
        raise InputError("experts with moe_latent_size are not supported", OTHERS)
    shape = decoders.llama(config).replaced(
        rotary=False,
        gated=False,
        query_bias=False,
        out_bias=False,
        activation=config.activation("mlp_hidden_act", default="relu2"),
    )
    types = config.layer_types("hybrid_override_pattern", shape.layers)
    types = types or config.layer_types("layers_block_type", shape.layers)
    if not types:
        raise InputError("Nemotron-H needs hybrid_override_pattern", OTHERS)
    if unknown := sorted(set(types) - set(_LAYERS_OF_NEMOTRON)):
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
        )
    return shape.replaced(state_space=space, kinds=kinds, experts=experts)


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
