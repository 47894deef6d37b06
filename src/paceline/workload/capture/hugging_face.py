"""Hugging Face's ``config.json``, read directly: which transformer it is, as one description.

Each ``model_type`` has a short function that says in `TransformerShape` what that architecture
is; `transformer_shape` then writes it down as a graph with the head that it is trained with.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

from paceline.errors import InputError
from paceline.json_checks import parsed_json
from paceline.naming import look_up
from paceline.user_files import read_text
from paceline.workload.capture.transformer_shape import TransformerShape, transformer
from paceline.workload.graph import Graph

LARGEST_BYTES = 16_000_000
LARGEST_SIZE = 2**40
MOST_LAYERS = 2_000
"""More than any network that was trained; each is written down."""

DEFAULT_SEQUENCE = 4096
"""Tokens per sample, unless the configuration allows fewer."""

OTHERS = (
    "any other model is captured from a function in a file: "
    "return AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(FOLDER))"
)
"""What a configuration that is not read directly can still do."""


def load_config(path: Path) -> Graph:
    """The graph of a configuration file."""
    try:
        document = parsed_json(read_text(path, LARGEST_BYTES, "config.json"))
    except ValueError as error:
        raise InputError(
            f"{path} is not JSON that can be read ({error})", "give config.json"
        ) from None
    if not isinstance(document, dict) or "model_type" not in document:
        raise InputError(
            f"{path} has no 'model_type', so it is not a Hugging Face configuration",
            "give the config.json that lies beside the weights",
        )
    config = Config(document, path.name)
    kind = str(document["model_type"])
    known = f"read directly: {', '.join(sorted(ARCHITECTURES))}; {OTHERS}"
    described = look_up("Hugging Face model_type", kind, ARCHITECTURES, known)
    name = str(document.get("_name_or_path") or document.get("name") or kind).split("/")[-1]
    graph = transformer(name or kind, described(config))
    longest = config.positions()
    if longest is not None and longest > DEFAULT_SEQUENCE:
        note = f"{DEFAULT_SEQUENCE:,} tokens per sample unless --seq says more; up to {longest:,}"
        graph = replace(graph, notes=(note,))
    return graph


class Config:
    """A configuration whose fields are looked up under any of several names."""

    def __init__(self, document: Mapping[str, Any], file: str) -> None:
        self._document, self._file = document, file

    def size(self, *names: str, default: int | None = None) -> int:
        """A number above zero."""
        for name in names:
            value = self._document.get(name)
            if value is not None:
                most = MOST_LAYERS if "layer" in name else LARGEST_SIZE
                if type(value) is not int or not 1 <= value <= most:
                    raise InputError(
                        f"{self._file}: {name} is {_shortly(value)}, not a number from 1 to {most}",
                        "give the config.json that lies beside the weights",
                    )
                return value
        if default is None:
            raise InputError(
                f"{self._file} has no {' or '.join(names)}", "add it, or give the complete file"
            )
        return default

    def given(self, name: str) -> bool:
        """Whether a field is there and not empty."""
        return bool(self._document.get(name))

    def flag(self, name: str, default: bool) -> bool:
        """A yes or no."""
        value = self._document.get(name)
        return default if value is None else bool(value)

    def activation(self, *names: str, default: str) -> str:
        """The activation in the graph's vocabulary."""
        value = next((self._document[name] for name in names if self._document.get(name)), default)
        return look_up(
            "activation", str(value), ACTIVATIONS, f"understood: {', '.join(ACTIVATIONS)}"
        )

    def head(self, default: str) -> str:
        """What the first architecture is trained on; one that is not known is refused."""
        names = self._document.get("architectures")
        name = str(names[0]) if isinstance(names, list) and names else ""
        for suffix, head in HEADS.items():
            if head and name.endswith(suffix):
                return head
            if name.endswith(suffix):
                break
        if not name:
            return default
        known = ", ".join(f"...{suffix}" for suffix, head in HEADS.items() if head)
        raise InputError(
            f"{self._file}: the head of {name} is not known", f"read directly: {known}; {OTHERS}"
        )

    def positions(self) -> int | None:
        """The longest sequence that the configuration allows; None where it says nothing."""
        return self.size(*POSITIONS, default=0) or None

    def labels(self) -> int:
        """Number of classes of a classifier."""
        named = self._document.get("id2label")
        return (
            len(named) if isinstance(named, dict) and named else self.size("num_labels", default=2)
        )


def _shortly(value: Any) -> str:
    words = value if isinstance(value, str) else str(type(value).__name__)
    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300:
        words = str(value)
    return words if len(words) < 40 else words[:37] + "..."


HEADS = {
    "ForCausalLM": "tokens",
    "LMHeadModel": "tokens",
    "ForMaskedLM": "masked",
    "ForPreTraining": "pretraining",
    "ForSequenceClassification": "classes",
    "ForTokenClassification": "token_classes",
    "ForQuestionAnswering": "span",
    "ForNextSentencePrediction": "order",
    "DoubleHeadsModel": "",
    "Model": "features",
}
"""The head of an architecture, by the end of its name; empty for one that is not read."""

POSITIONS = ("max_position_embeddings", "n_positions", "n_ctx", "seq_length", "max_seq_len")
"""Where configurations keep the longest sequence."""

ACTIVATIONS = {
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_fast": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "gelu_python": "gelu",
    "quick_gelu": "gelu_tanh",
    "relu": "relu",
    "silu": "silu",
    "swish": "silu",
    "tanh": "tanh",
}
"""Hugging Face's names of activations, in the graph's vocabulary."""


def _common(config: Config) -> dict[str, Any]:
    hidden = config.size("hidden_size", "n_embd", "d_model", "dim")
    heads = config.size("num_attention_heads", "n_head", "n_heads", "num_heads")
    return {
        "hidden": hidden,
        "layers": config.size("num_hidden_layers", "n_layer", "n_layers", "num_layers"),
        "heads": heads,
        "kv_heads": config.size("num_key_value_heads", default=heads),
        "head_dim": config.size("head_dim", default=max(1, hidden // heads)),
        "vocabulary": config.size("vocab_size"),
        "sequence": min(config.positions() or DEFAULT_SEQUENCE, DEFAULT_SEQUENCE),
        "head": config.head("tokens"),
        "labels": config.labels(),
    }


def _rows(config: Config, common: Mapping[str, Any]) -> int:
    """Rows of a table of positions: every one that the configuration allows."""
    return config.positions() or int(common["sequence"])


def _gpt2(config: Config) -> TransformerShape:
    common = _common(config)
    return TransformerShape(
        **common,
        inner=config.size("n_inner", default=4 * common["hidden"]),
        learned_positions=_rows(config, common),
        activation=config.activation("activation_function", default="gelu_new"),
        joint_projection=True,
        tied=config.flag("tie_word_embeddings", True),
    )


def _gpt_bigcode(config: Config) -> TransformerShape:
    shape = _gpt2(config)
    return shape.replaced(kv_heads=1 if config.flag("multi_query", True) else shape.heads)


def _gpt_neo(config: Config) -> TransformerShape:
    common = _common(config)
    return TransformerShape(
        **common,
        inner=config.size("intermediate_size", default=4 * common["hidden"]),
        learned_positions=_rows(config, common),
        activation=config.activation("activation_function", default="gelu_new"),
        query_bias=False,
        tied=config.flag("tie_word_embeddings", True),
    )


def _gpt_neox(config: Config) -> TransformerShape:
    return TransformerShape(
        **_common(config),
        inner=config.size("intermediate_size"),
        rotary=True,
        activation=config.activation("hidden_act", default="gelu"),
        joint_projection=True,
        parallel="two_norms" if config.flag("use_parallel_residual", True) else "no",
        tied=config.flag("tie_word_embeddings", False),
    )


def _gptj(config: Config) -> TransformerShape:
    common = _common(config)
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


def _opt(config: Config) -> TransformerShape:
    common = _common(config)
    if config.size("word_embed_proj_dim", default=common["hidden"]) != common["hidden"]:
        raise InputError("OPT with a narrower embedding is not read", "use another size of OPT")
    return TransformerShape(
        **common,
        inner=config.size("ffn_dim"),
        learned_positions=_rows(config, common) + 2,
        activation=config.activation("activation_function", default="relu"),
        tied=config.flag("tie_word_embeddings", True),
    )


def _bloom(config: Config) -> TransformerShape:
    common = _common(config)
    return TransformerShape(
        **common,
        inner=4 * common["hidden"],
        activation="gelu_tanh",
        joint_projection=True,
        embedding_norm=True,
        tied=config.flag("tie_word_embeddings", True),
    )


def _falcon(config: Config) -> TransformerShape:
    common = _common(config)
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


def _mpt(config: Config) -> TransformerShape:
    common = _common(config)
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


def _phi(config: Config) -> TransformerShape:
    return TransformerShape(
        **_common(config),
        inner=config.size("intermediate_size"),
        rotary=True,
        activation=config.activation("hidden_act", default="gelu_new"),
        parallel="one_norm",
        head_bias=True,
        tied=config.flag("tie_word_embeddings", False),
    )


def _llama(config: Config) -> TransformerShape:
    bias = config.flag("attention_bias", False)
    mlp_bias = config.flag("mlp_bias", False)
    return TransformerShape(
        **_common(config),
        inner=config.size("intermediate_size"),
        rotary=True,
        norm="rms",
        activation=config.activation("hidden_act", default="silu"),
        gated=True,
        query_bias=bias,
        out_bias=bias,
        mlp_bias=mlp_bias,
        tied=config.flag("tie_word_embeddings", False),
    )


def _qwen2(config: Config) -> TransformerShape:
    return _llama(config).replaced(query_bias=True)


def _qwen3(config: Config) -> TransformerShape:
    return _llama(config).replaced(norm_of_heads=True)


def _gemma(config: Config) -> TransformerShape:
    activation = config.activation("hidden_activation", "hidden_act", default="gelu_pytorch_tanh")
    tied = config.flag("tie_word_embeddings", True)
    return _llama(config).replaced(activation=activation, tied=tied)


def _gemma2(config: Config) -> TransformerShape:
    size = config.size("head_dim", default=256)
    return _gemma(config).replaced(head_dim=size, sandwich_norm=True)


def _gemma3(config: Config) -> TransformerShape:
    return _gemma2(config).replaced(norm_of_heads=True)


def _qwen3_moe(config: Config) -> TransformerShape:
    if config.size("decoder_sparse_step", default=1) != 1 or config.given("mlp_only_layers"):
        raise InputError("layers of experts between dense ones are not read", OTHERS)
    return _qwen3(config).replaced(
        experts=config.size("num_experts", "num_local_experts"),
        top_k=config.size("num_experts_per_tok"),
        inner=config.size("moe_intermediate_size"),
    )


def _mixtral(config: Config) -> TransformerShape:
    return _llama(config).replaced(
        experts=config.size("num_local_experts"), top_k=config.size("num_experts_per_tok")
    )


def _bert(config: Config) -> TransformerShape:
    common = _common(config)
    return TransformerShape(
        **common | {"head": config.head("masked")},
        inner=config.size("intermediate_size", "hidden_dim"),
        learned_positions=_rows(config, common),
        segments=config.size("type_vocab_size", default=2),
        activation=config.activation("hidden_act", "activation", default="gelu"),
        causal=False,
        post_norm=True,
        embedding_norm=True,
        tied=config.flag("tie_word_embeddings", True),
        head_bias=True,
    )


def _roberta(config: Config) -> TransformerShape:
    shape = _bert(config)
    # Two positions are kept for padding, so sequences are two shorter than the table.
    return shape.replaced(sequence=max(1, min(shape.sequence, shape.learned_positions - 2)))


def _distilbert(config: Config) -> TransformerShape:
    return _bert(config).replaced(segments=0)


Architecture: TypeAlias = Callable[[Config], TransformerShape]
ARCHITECTURES: Mapping[str, Architecture] = {
    "bert": _bert,
    "bloom": _bloom,
    "distilbert": _distilbert,
    "falcon": _falcon,
    "gemma": _gemma,
    "gemma2": _gemma2,
    "gemma3_text": _gemma3,
    "gpt2": _gpt2,
    "gpt_bigcode": _gpt_bigcode,
    "gpt_neo": _gpt_neo,
    "gpt_neox": _gpt_neox,
    "gptj": _gptj,
    "llama": _llama,
    "mistral": _llama,
    "mixtral": _mixtral,
    "mpt": _mpt,
    "opt": _opt,
    "phi": _phi,
    "phi3": _llama,
    "qwen2": _qwen2,
    "qwen3": _qwen3,
    "qwen3_moe": _qwen3_moe,
    "roberta": _roberta,
    "xlm-roberta": _roberta,
}
"""How each ``model_type`` is described."""
