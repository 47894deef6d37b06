"""Look up and check fields of a configuration under alternative names."""

from collections.abc import Mapping
from typing import Any

from paceline.errors import InputError
from paceline.naming import look_up

LARGEST_SIZE = 2**40
MOST_LAYERS = 2_000
"""More layers than any trained network; every layer is built."""

DEFAULT_SEQUENCE = 4096
"""Tokens per sample, unless the maximum of the configuration is lower."""

OTHERS = (
    "for any other model, capture a function in a Python file that does "
    "return AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(FOLDER))"
)
"""Hint for configurations that are not supported."""


class Config:
    """A configuration whose fields may have alternative names."""

    def __init__(self, document: Mapping[str, Any], file: str, seq: int | None = None) -> None:
        self._document, self._file = document, file
        self.seq = seq
        """Tokens per sample given by the user."""
        self.notes: list[str] = []
        """Notes to the user on parts that are not modelled."""

    def part(self, name: str, defaults: Mapping[str, Any] | None = None) -> "Config":
        """The nested configuration of a part of the network; it shares the notes.

        ``defaults`` are fields that it may leave out, unless it is of another ``model_type``.
        """
        value = self._document.get(name)
        if not isinstance(value, dict):
            raise InputError(f"{self._file} has no {name}", "add it or give the complete file")
        shared = {key: self._document[key] for key in SHARED if key in self._document}
        if defaults and value.get("model_type", defaults["model_type"]) == defaults["model_type"]:
            shared |= defaults
        within = Config(shared | value, f"{self._file}: {name}", self.seq)
        within.notes = self.notes
        return within

    def size(self, *names: str, default: int | None = None, least: int = 1) -> int:
        for name in names:
            value = self._document.get(name)
            if value is not None:
                most = MOST_LAYERS if "layer" in name else LARGEST_SIZE
                if type(value) is not int or not least <= value <= most:
                    raise self._wrong(name, f"an integer between {least} and {most}")
                return value
        if default is None:
            raise InputError(
                f"{self._file} has no {' or '.join(names)}", "add it or give the complete file"
            )
        return default

    def dtype(self) -> str:
        """The precision of the weights, such as ``bfloat16``; empty if not given."""
        text = self._document.get("text_config")
        parts = (self._document, text if isinstance(text, dict) else {})
        found = (part.get(name) for part in parts for name in ("torch_dtype", "dtype"))
        known = ("bfloat16", "float16", "float32")
        return next((name for name in found if name in known), "")

    def given(self, name: str) -> bool:
        return bool(self._document.get(name))

    def numbers(self, name: str) -> list[int]:
        """A list of non-negative integers; empty if not given."""
        value = self._document.get(name) or []
        if not isinstance(value, list) or any(type(n) is not int or n < 0 for n in value):
            raise self._wrong(name, "a list of integers")
        return value

    def layer_types(self, name: str, layers: int) -> list[str]:
        """One string per layer, from a list or the characters of a string; empty if not given."""
        value = self._document.get(name) or []
        types: list[Any] = list(value) if isinstance(value, list | str) else [None]
        if any(not isinstance(kind, str) for kind in types) or len(types) not in (0, layers):
            raise self._wrong(name, f"one string for each of the {layers} layers")
        return types

    def text(self, name: str, default: str) -> str:
        value = self._document.get(name)
        if value is not None and not isinstance(value, str):
            raise self._wrong(name, "a string")
        return value or default

    def is_text(self, name: str, text: str) -> bool:
        """Whether a field that may also be a number is a given string."""
        return bool(self._document.get(name) == text)

    def _wrong(self, name: str, expected: str) -> InputError:
        return InputError(
            f"{self._file}: {name} must be {expected} (got {_shortened(self._document[name])})",
            "give the config.json from the folder of the weights",
        )

    def flag(self, name: str, default: bool) -> bool:
        value = self._document.get(name)
        return default if value is None else bool(value)

    def activation(self, *names: str, default: str) -> str:
        value = next((self._document[name] for name in names if self._document.get(name)), default)
        return look_up(
            "activation", str(value), ACTIVATIONS, f"supported: {', '.join(ACTIVATIONS)}"
        )

    def head(self, default: str) -> str:
        """The head of the first architecture; raise if it is unknown."""
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
            f"{self._file}: the head of {name} is not supported",
            f"supported: {known}; {OTHERS}",
        )

    def positions(self) -> int | None:
        """The longest sequence of the configuration; None if not given."""
        return self.size(*POSITIONS, default=0) or None

    def labels(self) -> int:
        named = self._document.get("id2label")
        return (
            len(named) if isinstance(named, dict) and named else self.size("num_labels", default=2)
        )


def _shortened(value: Any) -> str:
    text = value if isinstance(value, str) else str(type(value).__name__)
    if isinstance(value, int | float) and not isinstance(value, bool):
        text = str(value) if abs(value) < 1e300 else "beyond 1e300"
    return text if len(text) < 40 else text[:37] + "..."


HEADS = {
    "ForCausalLM": "tokens",
    "ForConditionalGeneration": "tokens",
    "ForImageClassification": "classes",
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
"""The head of an architecture by the suffix of its name; empty if not supported."""

SHARED = ("architectures", "tie_word_embeddings")
"""Fields that also apply to nested configurations."""

POSITIONS = (
    "max_position_embeddings",
    "n_positions",
    "n_ctx",
    "seq_length",
    "max_seq_len",
    "max_target_positions",
)
"""Alternative names of the longest sequence."""

ACTIVATIONS = {
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_fast": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "gelu_python": "gelu",
    "quick_gelu": "gelu_tanh",
    "relu": "relu",
    "relu2": "relu",
    "silu": "silu",
    "swish": "silu",
    "tanh": "tanh",
}
"""The graph's name of each Hugging Face activation with the same cost."""


def common_sizes(config: Config) -> dict[str, Any]:
    hidden = config.size("hidden_size", "n_embd", "d_model", "dim")
    heads = config.size("num_attention_heads", "n_head", "n_heads", "num_heads")
    return {
        "hidden": hidden,
        "layers": config.size("num_hidden_layers", "n_layer", "n_layers", "num_layers"),
        "heads": heads,
        "kv_heads": config.size("num_key_value_heads", default=heads),
        "head_dim": config.size("head_dim", default=max(1, hidden // heads)),
        "vocabulary": config.size("vocab_size"),
        "sequence": sequence_of(config),
        "head": config.head("tokens"),
        "labels": config.labels(),
    }


def position_rows(config: Config, common: Mapping[str, Any]) -> int:
    """Rows of a table of learned positions: the longest sequence of the configuration."""
    return config.positions() or int(common["sequence"])


def sequence_of(config: Config) -> int:
    """Tokens per sample: 4,096 or the configuration's maximum if lower; noted if higher."""
    longest = config.positions()
    if longest is None or longest == DEFAULT_SEQUENCE:
        return DEFAULT_SEQUENCE
    if longest > DEFAULT_SEQUENCE and config.seq is None:
        config.notes.append(
            f"{DEFAULT_SEQUENCE:,} tokens per sample unless --seq is given (maximum {longest:,})"
        )
    return min(longest, DEFAULT_SEQUENCE)
