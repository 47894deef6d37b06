"""Fields of a configuration: looked up under any of several names, and checked."""

from collections.abc import Mapping
from typing import Any

from paceline.errors import InputError
from paceline.naming import look_up

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


class Config:
    """A configuration whose fields are looked up under any of several names."""

    def __init__(self, document: Mapping[str, Any], file: str) -> None:
        self._document, self._file = document, file
        self.notes: list[str] = []
        """What the description leaves out, for the user to know."""

    def part(self, name: str) -> "Config":
        """A configuration within this one, of a part of the network; notes go to this one."""
        value = self._document.get(name)
        if not isinstance(value, dict):
            raise InputError(f"{self._file} has no {name}", "add it, or give the complete file")
        shared = {key: self._document[key] for key in SHARED if key in self._document}
        within = Config(shared | value, f"{self._file}: {name}")
        within.notes = self.notes
        return within

    def size(self, *names: str, default: int | None = None, least: int = 1) -> int:
        """A number above zero, or from ``least`` on."""
        for name in names:
            value = self._document.get(name)
            if value is not None:
                most = MOST_LAYERS if "layer" in name else LARGEST_SIZE
                if type(value) is not int or not least <= value <= most:
                    raise self._wrong(name, f"not a number from {least} to {most}")
                return value
        if default is None:
            raise InputError(
                f"{self._file} has no {' or '.join(names)}", "add it, or give the complete file"
            )
        return default

    def given(self, name: str) -> bool:
        """Whether a field is there and not empty."""
        return bool(self._document.get(name))

    def numbers(self, name: str) -> list[int]:
        """A list of numbers from 0 on; empty where there is none."""
        value = self._document.get(name) or []
        if not isinstance(value, list) or any(type(n) is not int or n < 0 for n in value):
            raise self._wrong(name, "not a list of numbers")
        return value

    def words(self, name: str, layers: int) -> list[str]:
        """One word for each layer, in a list or as the letters of a word; empty if not given."""
        value = self._document.get(name) or []
        words: list[Any] = list(value) if isinstance(value, list | str) else [None]
        if any(not isinstance(word, str) for word in words) or len(words) not in (0, layers):
            raise self._wrong(name, f"not one word for each of {layers} layers")
        return words

    def word(self, name: str, default: str) -> str:
        """A word."""
        value = self._document.get(name)
        if value is not None and not isinstance(value, str):
            raise self._wrong(name, "not a word")
        return value or default

    def is_word(self, name: str, word: str) -> bool:
        """Whether a field that may also be a number is a certain word."""
        return bool(self._document.get(name) == word)

    def _wrong(self, name: str, why: str) -> InputError:
        return InputError(
            f"{self._file}: {name} is {_shortly(self._document[name])}, {why}",
            "give the config.json that lies beside the weights",
        )

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
    if isinstance(value, int | float) and not isinstance(value, bool):
        words = str(value) if abs(value) < 1e300 else "beyond 1e300"
    return words if len(words) < 40 else words[:37] + "..."


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
"""The head of an architecture, by the end of its name; empty for one that is not read."""

SHARED = ("architectures", "tie_word_embeddings")
"""Fields that hold for the parts of a network too."""

POSITIONS = (
    "max_position_embeddings",
    "n_positions",
    "n_ctx",
    "seq_length",
    "max_seq_len",
    "max_target_positions",
)
"""Where configurations keep the longest sequence."""

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
"""Hugging Face's names of activations, in the graph's vocabulary."""
