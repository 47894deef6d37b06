"""Decoders before Llama: layer norms, biases, learned, rotary or ALiBi positions."""

from paceline.errors import InputError
from paceline.workload.capture.hugging_face.fields import Config, common_sizes, position_rows
from paceline.workload.zoo.transformers import TransformerShape


def gpt2(config: Config) -> TransformerShape:
    common = common_sizes(config)
    return TransformerShape(
        **common,
        inner=config.size("n_inner", default=4 * common["hidden"]),
        learned_positions=position_rows(config, common),
        activation=config.activation("activation_function", default="gelu_new"),
        joint_projection=True,
        tied=config.flag("tie_word_embeddings", True),
    )


def gpt_bigcode(config: Config) -> TransformerShape:
    """StarCoder: GPT-2 with one head of keys and values."""
    shape = gpt2(config)
    return shape.replaced(kv_heads=1 if config.flag("multi_query", True) else shape.heads)


def gpt_neo(config: Config) -> TransformerShape:
    common = common_sizes(config)
    return TransformerShape(
        **common,
        inner=config.size("intermediate_size", default=4 * common["hidden"]),
        learned_positions=position_rows(config, common),
        activation=config.activation("activation_function", default="gelu_new"),
        query_bias=False,
        tied=config.flag("tie_word_embeddings", True),
    )


def gpt_neox(config: Config) -> TransformerShape:
    return TransformerShape(
        **common_sizes(config),
        inner=config.size("intermediate_size"),
        rotary=True,
        activation=config.activation("hidden_act", default="gelu"),
        joint_projection=True,
        parallel="two_norms" if config.flag("use_parallel_residual", True) else "no",
        tied=config.flag("tie_word_embeddings", False),
    )


def gptj(config: Config) -> TransformerShape:
    common = common_sizes(config)
    return TransformerShape(
        **common,
        inner=config.size("n_inner", default=4 * common["hidden"]),
        rotary=True,
        activation=config.activation("activation_function", default="gelu_new"),
        query_bias=False,
        out_bias=False,
        parallel="one_norm",
        head_bias=True,
        tied=config.flag("tie_word_embeddings", False),
    )


def opt(config: Config) -> TransformerShape:
    """OPT, except the 350M size, whose embedding is narrower than its layers."""
    common = common_sizes(config)
    if config.size("word_embed_proj_dim", default=common["hidden"]) != common["hidden"]:
        raise InputError(
            "OPT with an embedding narrower than its layers is not supported",
            "use another size of OPT",
        )
    return TransformerShape(
        **common,
        inner=config.size("ffn_dim"),
        # OPTLearnedPositionalEmbedding has an offset of two rows.
        learned_positions=position_rows(config, common) + 2,
        activation=config.activation("activation_function", default="relu"),
        tied=config.flag("tie_word_embeddings", True),
    )


def bloom(config: Config) -> TransformerShape:
    common = common_sizes(config)
    return TransformerShape(
        **common,
        inner=4 * common["hidden"],
        activation="gelu_tanh",
        joint_projection=True,
        embedding_norm=True,
        tied=config.flag("tie_word_embeddings", True),
    )


def falcon(config: Config) -> TransformerShape:
    """Falcon, with the first and the new decoder architecture."""
    common = common_sizes(config)
    new = config.flag("new_decoder_architecture", False)
    kv_heads = config.size("num_kv_heads", default=common["heads"]) if new else common["heads"]
    if not new and config.flag("multi_query", True):
        kv_heads = 1
    bias = config.flag("bias", False)
    parallel = "one_norm" if config.flag("parallel_attn", True) else "no"
    return TransformerShape(
        **common | {"kv_heads": kv_heads},
        inner=config.size("ffn_hidden_size", default=4 * common["hidden"]),
        rotary=not config.flag("alibi", False),
        activation=config.activation("activation", default="gelu"),
        query_bias=bias,
        out_bias=bias,
        mlp_bias=bias,
        joint_projection=True,
        parallel="two_norms" if new else parallel,
        tied=config.flag("tie_word_embeddings", True),
    )


def mpt(config: Config) -> TransformerShape:
    common = common_sizes(config)
    bias = not config.flag("no_bias", True)
    return TransformerShape(
        **common,
        inner=config.size("expansion_ratio", default=4) * common["hidden"],
        activation="gelu",
        norm_bias=bias,
        query_bias=bias,
        out_bias=bias,
        mlp_bias=bias,
        joint_projection=True,
        tied=config.flag("tie_word_embeddings", True),
    )


def phi(config: Config) -> TransformerShape:
    return TransformerShape(
        **common_sizes(config),
        inner=config.size("intermediate_size"),
        rotary=True,
        activation=config.activation("hidden_act", default="gelu_new"),
        parallel="one_norm",
        head_bias=True,
        tied=config.flag("tie_word_embeddings", False),
    )
