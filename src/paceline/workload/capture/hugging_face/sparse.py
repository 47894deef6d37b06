"""Decoders with mixture of experts."""

from collections.abc import Callable
from dataclasses import replace

from paceline.workload.capture.hugging_face import decoders
from paceline.workload.capture.hugging_face.fields import Config
from paceline.workload.zoo.transformers import Experts, LatentAttention, TransformerShape

_BIASED_ROUTING = ("deepseek_v3", "kimi_k2", "glm4_moe", "dots1")
"""Models whose router has a buffer ``e_score_correction_bias`` (balance without auxiliary loss)."""


def with_experts(
    shape: TransformerShape, experts: Experts, has_experts: Callable[[int], bool] = lambda _: True
) -> TransformerShape:
    """Add experts to the layers that have them."""
    kinds = tuple(
        replace(shape.layer(layer), feed_forward="experts" if has_experts(layer) else "dense")
        for layer in range(shape.layers)
    )
    return shape.replaced(experts=experts, kinds=kinds)


def _experts(config: Config, inner: int) -> Experts:
    return Experts(
        config.size("num_local_experts", "num_experts", "n_routed_experts"),
        config.size("num_experts_per_tok"),
        inner,
    )


def mixtral(config: Config) -> TransformerShape:
    shape = decoders.mistral(config)
    return with_experts(shape, _experts(config, shape.inner))


def olmoe(config: Config) -> TransformerShape:
    return mixtral(config).replaced(norm_of_heads="whole")


def phimoe(config: Config) -> TransformerShape:
    """Phi-3.5-MoE: layer norms, bias in the head."""
    return mixtral(config).replaced(norm="layer", head_bias=config.flag("lm_head_bias", False))


def qwen2_moe(config: Config) -> TransformerShape:
    """Qwen 1.5 and 2 MoE: a gated shared expert."""
    width = config.size("shared_expert_intermediate_size")
    return _qwen_moe(config, decoders.qwen2(config), shared_inner=width, shared_gate=True)


def qwen3_moe(config: Config) -> TransformerShape:
    return _qwen_moe(config, decoders.qwen3(config))


def _qwen_moe(
    config: Config, shape: TransformerShape, shared_inner: int = 0, shared_gate: bool = False
) -> TransformerShape:
    experts = replace(
        _experts(config, config.size("moe_intermediate_size")),
        shared_inner=shared_inner,
        shared_gate=shared_gate,
    )
    step, dense = config.size("decoder_sparse_step", default=1), config.numbers("mlp_only_layers")
    return with_experts(
        shape, experts, lambda layer: layer not in dense and (layer + 1) % step == 0
    )


def deepseek(config: Config) -> TransformerShape:
    """DeepSeek V2 and V3 and Kimi K2: latent attention, shared experts, dense first layers."""
    latent = LatentAttention(
        query_rank=config.size("q_lora_rank", default=0),
        key_rank=config.size("kv_lora_rank"),
        plain_dim=config.size("qk_nope_head_dim"),
        rotary_dim=config.size("qk_rope_head_dim"),
        value_dim=config.size("v_head_dim"),
    )
    shape = decoders.llama(config)
    head_dim = latent.plain_dim + latent.rotary_dim
    shape = shape.replaced(latent=latent, head_dim=head_dim, kv_heads=shape.heads)
    return _behind_dense_layers(config, shape)


def glm4_moe(config: Config) -> TransformerShape:
    by_head = config.flag("use_qk_norm", False)
    shape = decoders.llama(config).replaced(
        out_bias=False, norm_of_heads="head" if by_head else "no"
    )
    return _behind_dense_layers(config, shape)


def dots1(config: Config) -> TransformerShape:
    return _behind_dense_layers(config, decoders.llama(config).replaced(norm_of_heads="head"))


def _behind_dense_layers(config: Config, shape: TransformerShape) -> TransformerShape:
    inner = config.size("moe_intermediate_size")
    shared = config.size("n_shared_experts", default=0, least=0)
    experts = replace(_experts(config, inner), shared_inner=shared * inner)
    dense = config.size("first_k_dense_replace", default=0, least=0)
    step = config.size("moe_layer_freq", default=1)
    if config.size("num_nextn_predict_layers", default=0, least=0):
        config.notes.append("multi-token prediction layers (num_nextn_predict_layers) are left out")
    if config.text("model_type", "") in _BIASED_ROUTING:
        config.notes.append(
            f"routing biases ({experts.count} numbers per layer of experts, updated without "
            "gradients) are not counted as parameters"
        )
    return with_experts(shape, experts, lambda layer: layer >= dense and layer % step == 0)


def gpt_oss(config: Config) -> TransformerShape:
    """GPT-OSS: attention sinks, biases, sliding window in every other layer."""
    bias = config.flag("attention_bias", True)
    shape = decoders.llama(config).replaced(query_bias=bias, out_bias=bias, sinks=True)
    shape = decoders.windowed(config, shape, lambda layer: layer % 2 == 0)
    return with_experts(shape, replace(_experts(config, shape.inner), bias=True))


def llama4(config: Config) -> TransformerShape:
    """The text model of Llama 4: one routed and one shared expert per token, in some layers."""
    inner = config.size("intermediate_size")
    shape = decoders.llama(config).replaced(inner=config.size("intermediate_size_mlp"))
    step = config.size("interleave_moe_layer_step", default=1)
    listed = config.numbers("moe_layers")
    chunk = config.size("attention_chunk_size", default=0, least=0)
    if chunk:
        config.notes.append(
            f"chunked attention ({chunk:,} tokens) is modelled as full causal attention"
        )
    experts = replace(_experts(config, inner), shared_inner=inner)
    return with_experts(
        shape,
        experts,
        lambda layer: layer in listed if listed else layer % step == step - 1,
    )


def llama4_with_images(config: Config) -> TransformerShape:
    """The text model of Llama 4, in the configuration of the multimodal model."""
    config.notes.append(decoders.WITHOUT_IMAGES)
    return llama4(config.part("text_config"))
